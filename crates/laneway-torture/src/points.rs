//! Every place at which a test build can be told to die. A hook cannot name a place that is not listed here, and the
//! walk fails for one that is listed and never comes by.

/// Which process comes past a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Node,
    Warden,
    /// A node of a store that is shared by many.
    Shared,
    /// A node, or `laneway effect` inside of a step: where an effect is asked for, run and told of.
    Effect,
    /// Wherever something is told to a run: a signal, that a child is there, has ended, or is to end.
    Telling,
    /// A node that fires what is due, while others look at the same.
    Firing,
    /// A node that submits the callbacks for the end of a run.
    Calling,
}

macro_rules! points {
    ($($(#[doc = $doc:literal])+ $point:ident = $name:literal in $place:ident;)+) => {
        /// A place at which the program can die.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Point {
            $($(#[doc = $doc])+ $point,)+
        }

        impl Point {
            pub const ALL: &[Self] = &[$(Self::$point),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)+
                }
            }

            pub fn place(self) -> Place {
                match self {
                    $(Self::$point => Place::$place,)+
                }
            }
        }
    };
}

points! {
    /// The store's directory is there, its tables are not.
    StoreMade = "store.made" in Node;
    /// The tables are there, nobody uses them yet.
    StoreMigrated = "store.migrated" in Node;
    /// Before BEGIN: verbs wait.
    BatchBefore = "store.batch.before" in Node;
    /// A verb is done within its transaction, perhaps with others before it.
    VerbAfter = "store.verb.after" in Node;
    /// All verbs are done, nothing is committed.
    CommitBefore = "store.commit.before" in Node;
    /// Committed, nobody was told.
    CommitAfter = "store.commit.after" in Node;
    /// Some callers were told, some may not have been.
    Answered = "store.answered" in Node;
    /// A checkpoint is due.
    CheckpointBefore = "store.checkpoint.before" in Node;
    /// What the WAL held is in the store's file.
    CheckpointAfter = "store.checkpoint.after" in Node;
    /// A session's lock is held, its row is not written.
    RegisterLocked = "store.register.locked" in Node;
    /// A session lives.
    RegisterAfter = "store.register.after" in Node;
    /// A session is about to end in good order.
    RetireBefore = "store.retire.before" in Node;
    /// Its row is gone, its lock is not.
    RetireAfter = "store.retire.after" in Node;
    /// A dead session was found, and its lock is held as proof.
    ReapBefore = "store.reap.before" in Node;
    /// Its tasks are returned, its lock file is still there.
    ReapAfter = "store.reap.after" in Node;
    /// A large submit has made the run's row.
    SubmitBegun = "store.submit.begun" in Node;
    /// A large submit has made some of the tasks.
    SubmitChunk = "store.submit.chunk" in Node;
    /// A submit is committed as a whole.
    SubmitAfter = "store.submit.after" in Node;
    /// A run without an owner is about to change hands.
    AdoptBefore = "store.adopt.before" in Node;
    /// It has.
    AdoptAfter = "store.adopt.after" in Node;
    /// A cancel is about to be written.
    CancelBefore = "store.cancel.before" in Node;
    /// A cancel is written; what runs is still running.
    CancelAfter = "store.cancel.after" in Node;
    /// The session's scratch directory is about to be made.
    ScratchBefore = "worker.scratch.before" in Node;
    /// It is made.
    ScratchAfter = "worker.scratch.after" in Node;
    /// Tasks are claimed, nothing of them has begun.
    Claimed = "worker.claimed" in Node;
    /// Attempts have begun.
    Begun = "worker.begun" in Node;
    /// An attempt has ended, the store does not know.
    AttemptEnded = "worker.ended" in Node;
    /// The store was told how attempts ended.
    Recorded = "worker.recorded" in Node;
    /// Time has opened gates.
    Promoted = "worker.promoted" in Node;
    /// The store asks for tasks to be stopped, nobody told them.
    StopAsked = "worker.stop" in Node;
    /// The run has ended; scratch and session are still there.
    RunOver = "worker.over" in Node;
    /// The warden process is started, nothing was said to it.
    WardenStarted = "warden.client.started" in Node;
    /// Something is about to be said to the warden.
    SendBefore = "warden.client.send" in Node;
    /// The warden said something.
    Received = "warden.client.received" in Node;
    /// A script is written, a program is found.
    LaunchPrepared = "process.prepared" in Node;
    /// The warden was asked to start a step.
    SpawnAsked = "process.asked" in Node;
    /// The warden said that the step has exited.
    Exited = "process.exited" in Node;
    /// Nothing of the step is left, its pipes are not drained.
    Gone = "process.gone" in Node;
    /// Its log is closed, its output is not read.
    OutputBefore = "process.output.before" in Node;
    /// Its output is read and removed, and nowhere else.
    OutputAfter = "process.output.after" in Node;
    /// A log file is about to be made.
    LogMake = "log.make" in Node;
    /// A log has its first bytes and no frame.
    LogBegun = "log.begun" in Node;
    /// A frame of output is in the log.
    LogWritten = "log.written" in Node;
    /// All statements of a transaction are decided on; its last flight, with COMMIT, is not sent.
    SharedCommitBefore = "shared.commit.before" in Shared;
    /// COMMIT was answered, nobody was told.
    SharedCommitAfter = "shared.commit.after" in Shared;
    /// Other nodes were notified, behind the commit or along with it.
    NotifyAfter = "shared.notify.after" in Shared;
    /// Sessions were found whose lease has ended; nothing of them is returned.
    ExpiredFound = "shared.expired" in Shared;
    /// Those were returned.
    ExpiredReaped = "shared.reaped" in Shared;
    /// A change is committed, and what it makes possible for another run is not done.
    FollowUp = "shared.follow" in Shared;
    /// The heartbeat is about to renew.
    RenewBefore = "shared.renew.before" in Shared;
    /// It has, and counts from a moment before.
    RenewAfter = "shared.renew.after" in Shared;
    /// A step asks for an effect, which is not recorded.
    EffectAsked = "effect.asked" in Effect;
    /// That it begins is recorded, and nobody was told.
    EffectBegun = "effect.begun" in Effect;
    /// `laneway effect` was told to run it, and has not.
    EffectBefore = "effect.before" in Effect;
    /// It has run, and nobody was told.
    EffectAfter = "effect.after" in Effect;
    /// The node was told how it ended, which is not recorded.
    EffectTold = "effect.told" in Effect;
    /// That is recorded, and nobody was told.
    EffectCommitted = "effect.committed" in Effect;
    /// `laneway effect` was told so, and the step knows nothing of it.
    EffectAnswered = "effect.answered" in Effect;
    /// A signal is about to be written.
    SignalBefore = "signal.before" in Telling;
    /// It is written, and who sent it was not told.
    SignalAfter = "signal.after" in Telling;
    /// A run that a step waits for was found, and is not started.
    ChildWanted = "child.wanted" in Telling;
    /// Its rows are made, or opened again, and its parent is not told; nothing is committed.
    ChildMade = "child.made" in Telling;
    /// Its parent is told, and nothing is committed.
    ChildTold = "child.told" in Telling;
    /// It is there, and who started it knows nothing of that.
    ChildStarted = "child.started" in Telling;
    /// It goes on, for a step that was tried again, and who saw to that knows nothing of it.
    ChildResumed = "child.resumed" in Telling;
    /// It has ended, and its parent is not told; nothing is committed.
    ChildOver = "child.over" in Telling;
    /// Its parent is told of its end, and nothing is committed.
    ChildOverTold = "child.over.told" in Telling;
    /// Who waits for it is to end, and it is not told; nothing is committed.
    ChildStop = "child.stop" in Telling;
    /// It is told to end, and nothing is committed.
    ChildStopTold = "child.stop.told" in Telling;
    /// A tick has come, and its run is not submitted.
    FireDue = "fire.due" in Firing;
    /// Its run is there, and that the tick is dealt with is not said.
    FireBefore = "fire.before" in Firing;
    /// That is said, and nothing is committed.
    FireMade = "fire.made" in Firing;
    /// It is committed, and who fired it knows nothing of that.
    FireAfter = "fire.after" in Firing;
    /// A run has ended, and its callbacks are not submitted.
    CallbacksOwed = "callbacks.owed" in Calling;
    /// The run of its callbacks is committed, and the end is not crossed off.
    CallbacksMade = "callbacks.made" in Calling;
    /// The warden has its cgroups, and has not said so.
    WardenReady = "warden.ready" in Warden;
    /// A request was received, nothing is done about it.
    WardenAsked = "warden.asked" in Warden;
    /// A step was started and is not in the warden's books.
    WardenSpawned = "warden.spawned" in Warden;
    /// A step's leader was reaped, its exit is not told.
    WardenReaped = "warden.reaped" in Warden;
    /// What is left of a step is about to be killed.
    WardenKill = "warden.kill" in Warden;
    /// A step was asked to end.
    WardenTerm = "warden.term" in Warden;
    /// Nothing of a step is left, which is not told.
    WardenGone = "warden.gone" in Warden;
    /// Something was told to the node.
    WardenTold = "warden.told" in Warden;
    /// The node is gone, nothing is killed yet.
    WardenAlone = "warden.alone" in Warden;
    /// Everything is killed, the cgroups are still there.
    WardenCleared = "warden.cleared" in Warden;
}

impl Point {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|point| point.name() == name)
    }
}
