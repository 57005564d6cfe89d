//! The one table: every route with its method, who may ask for it, and what OpenAPI says of it. The router is made from it
//! (so a route without a rule is not there), the description is made from it (so none is undocumented), and a test goes
//! through it cell by cell.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use laneway_core::role::Role;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::{HttpMethod, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use crate::access::{Guarded, Who, admit, front, no_method};
use crate::problem::Code;
use crate::refusals::refusals;
use crate::routes::{
    OfNodes, Paged, access, artifacts, cache, effects, events, files, health, hooks, limits, logs, nodes,
    overview, pools, runs, secrets, sign_in, tasks, triggers, validate, workers, workflows,
};
use crate::service::App;
use crate::{page, sse, wire};

/// Who may ask for what.
#[derive(Debug, Clone)]
pub struct Rule {
    pub method: &'static str,
    /// With `{name}` for parts that stand for something.
    pub path: &'static str,
    pub who: Who,
}

/// A route, its rule, and what is said of it.
pub(crate) struct Route {
    pub(crate) rule: Rule,
    pub(crate) method: HttpMethod,
    pub(crate) summary: &'static str,
    pub(crate) query: Option<fn() -> Vec<Parameter>>,
    pub(crate) body: Option<Shapely>,
    /// What it takes that is no JSON.
    pub(crate) bytes: Option<&'static str>,
    /// Nothing at all is a body too.
    pub(crate) is_body_optional: bool,
    pub(crate) answer: Answers,
    /// With what it may refuse, beyond what every route of its kind does (`refusals.rs`).
    pub(crate) refuses: &'static [Code],
    /// What it does is done to its end, also if whoever asked hangs up: a change, so that it is recorded.
    goes_on: bool,
    router: MethodRouter<App>,
}

/// Makes a shape. Only the description needs them, and few ask for it: a service would else begin by describing all that it can say.
pub(crate) type Shapely = fn() -> Shape;

/// A type of the wire, with all that it stands on.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
}

/// What a route answers when it does what was asked.
pub(crate) struct Answers {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) shape: Option<Shapely>,
    /// The same in another form, for who asks for that.
    pub(crate) also: Option<&'static str>,
    /// Of that other form some bytes can be asked for (`Range`).
    pub(crate) is_ranged: bool,
    /// Whoever has it already is told so.
    pub(crate) is_tagged: bool,
    /// A status with which the shape comes too, and not a problem.
    pub(crate) or_status: Option<u16>,
}

/// Those that answer to any name. What else needs no token does not.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

/// All rules.
pub fn rules() -> Vec<Rule> {
    table().into_iter().map(|route| route.rule).collect()
}

const VIEWER: Who = Who::AtLeast(Role::Viewer);
const OPERATOR: Who = Who::AtLeast(Role::Operator);
const ADMIN: Who = Who::AtLeast(Role::Admin);
const WORKER: Who = Who::AtLeast(Role::Worker);

#[rustfmt::skip]
pub(crate) fn table() -> Vec<Route> {
    use Code::{
        AmbiguousRun, BadCode, BadDocument, BadParams, BadRequest, EffectRuns, Illegal, KeyTaken, LeadsBack, LimitInUse, NoContainers, NoSuchArtifact,
        NoSuchBytes, NoSuchEffect, NoSuchEvent, NoSuchLimit, NoSuchNode, NoSuchPool, NoSuchRange, NoSuchRoute, NoSuchRun, NoSuchSecret, NoSuchSignal, NoSuchStep,
        NoSuchToken, NoSuchVersion, NoSuchWorkflow, NoTriggers, NotAdvancing, NotRunnable, NothingToRetry, PathTaken, Replayed, RunEnded, RunLocal,
        RunNotEnded, RunOwned, RunWentOn, StepNotFailed, StepNotWaiting, TokenExists, TriggersPaused, UnderWay, WorkflowInUse,
    };
    vec![
        get("/healthz", Who::Anybody, health::alive, "Whether the process lives").json::<wire::Health>(),
        get("/readyz", Who::Anybody, health::ready, "Whether it can do its work").json::<wire::Health>().or_status(503),
        get("/metrics", VIEWER, health::metrics, "Figures for Prometheus").gives("application/openmetrics-text"),
        get("/openapi.json", VIEWER, health::openapi, "This description").gives("application/json"),

        get("/", Who::Anybody, page::index, "The web page; it answers too at every address that is no other route, to who accepts text/html")
            .gives("text/html")
            .refuses(&[NoSuchRoute]),
        get("/assets/{file}", Who::Anybody, page::asset, "What the web page is made of").gives("*/*")
            .refuses(&[NoSuchRoute]),
        post("/v1/sign-in", Who::Anybody, sign_in::sign_in, "Get a token for a code, once").takes::<wire::SignIn>().created::<wire::CreatedToken>()
            .refuses(&[BadCode, TokenExists]),
        post("/v1/sign-in/codes", VIEWER, sign_in::make_code, "Make a code with which somebody signs in at the web page, once")
            .maybe_takes::<wire::MakeCode>().created::<wire::SignInCode>(),
        get("/v1/me", VIEWER, sign_in::me, "Whose token it is, and what it may do").json::<wire::Me>(),

        get("/v1/runs", VIEWER, runs::list, "List runs, newest first").asks::<runs::ListQuery>().json::<wire::RunList>(),
        post("/v1/runs", OPERATOR, runs::submit, "Submit a run; with the header Idempotency-Key, once for each key")
            .takes::<wire::Submit>().created::<wire::Submitted>()
            .refuses(&[BadRequest, BadDocument, BadParams, NotRunnable, NoSuchWorkflow, NoSuchLimit, NoSuchBytes, KeyTaken, UnderWay]),
        get("/v1/runs/{run}", VIEWER, runs::show, "A run and its tasks, as it is or as it was").asks::<runs::ShowQuery>().json::<wire::Run>()
            .refuses(&[NoSuchEvent]),
        get("/v1/runs/{run}/explain", VIEWER, runs::explain, "Why the tasks of a run wait, or ended so").json::<wire::ExplainedRun>(),
        get("/v1/runs/{run}/graph", VIEWER, runs::graph, "Its graph, laid out: where each step stands").json::<wire::Graph>().tagged(),
        get("/v1/runs/{run}/events", VIEWER, events::of_run, "Events of a run, in their order").asks::<events::EventsQuery>().json::<wire::EventList>(),
        post("/v1/runs/{run}/cancel", OPERATOR, runs::cancel, "End a run; nothing of it but its clean-up starts any more")
            .maybe_takes::<wire::Cancel>().json::<wire::Canceled>(),
        post("/v1/runs/{run}/retry", OPERATOR, runs::retry, "Run again what did not succeed, and everything behind it")
            .maybe_takes::<wire::Retry>().json::<wire::Reopened>()
            .refuses(&[NoSuchStep, NotRunnable, RunNotEnded, RunOwned, RunLocal, NothingToRetry, RunWentOn]),
        post("/v1/runs/{run}/pause", OPERATOR, runs::pause, "Let a run start nothing new").json::<wire::Paused>()
            .refuses(&[RunEnded]),
        post("/v1/runs/{run}/advance", OPERATOR, runs::advance, "Let a paused run go on by one level").json::<wire::Advanced>()
            .refuses(&[RunEnded, NotAdvancing]),
        post("/v1/runs/{run}/resume", OPERATOR, runs::resume, "Let a paused run go on").json::<wire::Paused>(),
        get("/v1/runs/{run}/tasks", VIEWER, tasks::list, "The tasks of a run, or the items of one of its steps").asks::<tasks::ListQuery>().json::<wire::TaskList>()
            .refuses(&[NoSuchStep]),
        get("/v1/runs/{run}/tasks/{step}", VIEWER, tasks::show, "One task").json::<wire::Task>(),
        get("/v1/runs/{run}/tasks/{step}/explain", VIEWER, tasks::explain, "Why a task waits, or ended so, with what it waits for")
            .json::<wire::ExplainedStep>(),
        post("/v1/runs/{run}/tasks/{step}/skip", OPERATOR, tasks::skip, "Let a run go on past a failed step").json::<wire::Reopened>()
            .refuses(&[NotRunnable, RunNotEnded, RunEnded, RunOwned, RunLocal, StepNotFailed, Illegal]),
        post("/v1/runs/{run}/tasks/{step}/signal", OPERATOR, tasks::signal, "Say what a step waits for; the first one counts")
            .takes::<wire::Signal>().json::<wire::Signaled>()
            .refuses(&[NoSuchSignal, StepNotWaiting]),
        get("/v1/runs/{run}/tasks/{step}/attempts", VIEWER, tasks::attempts, "The attempts of a task, oldest first").json::<wire::AttemptList>(),
        get("/v1/runs/{run}/tasks/{step}/attempts/{attempt}/log", VIEWER, logs::read, "What an attempt printed, from an offset on")
            .asks::<logs::LogQuery>().json::<wire::LogPage>().also("application/octet-stream").ranged()
            .refuses(&[NoSuchBytes, NoSuchRange]),

        get("/v1/runs/{run}/effects", VIEWER, effects::list, "What the steps of a run did to the world, without what they printed").json::<wire::EffectList>(),
        post("/v1/runs/{run}/tasks/{step}/effects/settle", OPERATOR, effects::settle, "Say what became of an effect that nobody runs any more")
            .takes::<wire::SettleEffect>().json::<wire::SettledEffect>()
            .refuses(&[NoSuchEffect, EffectRuns]),

        get("/v1/runs/{run}/artifacts", VIEWER, artifacts::list, "Files that the steps of a run left behind").json::<wire::ArtifactList>(),
        get("/v1/runs/{run}/tasks/{step}/artifact", VIEWER, artifacts::fetch, "What is in one of them")
            .asks::<artifacts::FetchQuery>().gives("application/octet-stream")
            .refuses(&[NoSuchArtifact, NoSuchBytes]),

        get("/v1/runs/{run}/tasks/{step}/files", VIEWER, files::list, "What a task changed in the files of its run").json::<wire::ChangedFiles>()
            .refuses(&[NoSuchStep, NoSuchBytes]),
        get("/v1/runs/{run}/tasks/{step}/file", VIEWER, files::fetch, "The content of one of these files")
            .asks::<files::FetchQuery>().gives("application/octet-stream")
            .refuses(&[NoSuchStep, NoSuchArtifact, NoSuchBytes]),

        get("/v1/events", VIEWER, sse::events, "Events of many runs, of nodes and of pools as they happen, on one connection")
            .asks::<sse::StreamQuery>().gives("text/event-stream")
            .refuses(&[NoSuchRun, AmbiguousRun]),

        get("/v1/nodes", VIEWER, nodes::list, "Nodes that are alive").json::<wire::NodeList>(),
        get("/v1/nodes/events", VIEWER, nodes::events, "What nodes told of themselves").asks::<OfNodes>().json::<wire::NodeEventList>(),
        get("/v1/nodes/{address}/workers", VIEWER, nodes::workers, "What works at an address").json::<wire::Workers>(),
        post("/v1/nodes/{address}/drain", ADMIN, nodes::drain, "Let a node take nothing more").json::<wire::Drained>(),

        get("/v1/pools", VIEWER, pools::list, "Warm containers of nodes that are alive, by pool").json::<wire::PoolList>(),
        get("/v1/pools/events", VIEWER, pools::events, "What warm containers did").asks::<OfNodes>().json::<wire::PoolEventList>(),
        post("/v1/pools/{name}/warm", OPERATOR, pools::warm, "Let nodes keep so many containers of a pool warm")
            .takes::<wire::WarmPool>().json::<wire::AskedPool>()
            .refuses(&[NoSuchPool, NoSuchWorkflow, NoSuchNode, NoContainers]),
        post("/v1/pools/{name}/drain", OPERATOR, pools::drain, "Let nodes remove the containers of a pool; those in use after their task")
            .maybe_takes::<wire::DrainPool>().json::<wire::AskedPool>()
            .refuses(&[NoSuchPool, NoSuchNode, NoContainers]),

        get("/v1/overview", VIEWER, overview::show, "What runs, ended, failed and waits of late").json::<wire::Overview>(),
        get("/v1/limits", VIEWER, limits::list, "Named limits, and how far they are used").json::<wire::LimitList>(),
        get("/v1/limits/{name}", VIEWER, limits::show, "A limit, who holds it and who waits for it").json::<wire::LimitLine>()
            .refuses(&[NoSuchLimit]),
        get("/v1/locks", VIEWER, limits::locks, "Locks that somebody holds or waits for, and orders on which somebody stands").json::<wire::LockList>(),
        put("/v1/limits/{name}", ADMIN, limits::set, "Make a limit, or change it for everybody").takes::<wire::SetLimit>().json::<wire::Limit>()
            .refuses(&[NoSuchLimit]),
        delete("/v1/limits/{name}", ADMIN, limits::remove, "Remove a limit that nothing needs").json::<wire::Removed>()
            .refuses(&[NoSuchLimit, LimitInUse]),

        get("/v1/cache", VIEWER, cache::list, "Results that steps with `cache` may take, those that were used last first")
            .asks::<cache::ListQuery>().json::<wire::CacheList>(),
        delete("/v1/cache", OPERATOR, cache::clear, "Forget results, so that the steps are executed again")
            .asks::<cache::ClearQuery>().json::<wire::CacheCleared>(),

        get("/v1/workflows", VIEWER, workflows::list, "Workflows that were applied, and how each ran last").json::<wire::WorkflowList>(),
        post("/v1/workflows", OPERATOR, workflows::apply, "Make a workflow known by its name; its triggers are armed")
            .takes::<wire::Apply>().json::<wire::Applied>()
            .refuses(&[BadDocument, NotRunnable, NoSuchBytes, PathTaken, LeadsBack]),
        put("/v1/bundles/{hash}", OPERATOR, workflows::bring, "Bring the files that go with a workflow, as a tar, under their BLAKE3 hash")
            .takes_bytes("application/x-tar").json::<wire::Brought>(),
        get("/v1/workflows/{name}/versions", VIEWER, workflows::versions, "What was applied under a name, newest first")
            .asks::<workflows::VersionsQuery>().json::<wire::VersionList>()
            .refuses(&[NoSuchWorkflow]),
        post("/v1/hooks/{path}", Who::Signed, hooks::take, "Start a run from a webhook: signed, and once for each delivery")
            .takes_bytes("application/json").created::<wire::Submitted>()
            .refuses(&[BadParams, NotRunnable, NoSuchWorkflow, NoSuchLimit, NoSuchBytes, KeyTaken, UnderWay, TriggersPaused, Replayed]),
        get("/v1/triggers", VIEWER, triggers::list, "What starts by itself, and when").json::<wire::TriggerList>(),
        post("/v1/workflows/{name}/triggers/pause", OPERATOR, triggers::pause, "Let a workflow start by itself no more").json::<wire::TriggersPaused>()
            .refuses(&[NoTriggers]),
        post("/v1/workflows/{name}/triggers/resume", OPERATOR, triggers::resume, "Let it start by itself again, from now on").json::<wire::TriggersPaused>()
            .refuses(&[NoTriggers]),
        delete("/v1/workflows/{name}/triggers", OPERATOR, triggers::remove, "Forget what starts a workflow by itself, until it is applied again").json::<wire::Removed>()
            .refuses(&[NoTriggers]),
        delete("/v1/workflows/{name}", OPERATOR, workflows::remove, "Forget what was applied under a name, with its triggers; its runs stay")
            .asks::<workflows::RemoveQuery>().json::<wire::Removed>()
            .refuses(&[NoSuchWorkflow, WorkflowInUse]),
        get("/v1/workflows/{name}", VIEWER, workflows::show, "The newest version of a workflow").json::<wire::Workflow>().tagged()
            .refuses(&[NoSuchWorkflow]),
        get("/v1/workflows/{name}/document", VIEWER, workflows::document, "Its document, as it was submitted")
            .asks::<workflows::VersionQuery>().gives("application/yaml").tagged()
            .refuses(&[NoSuchWorkflow, NoSuchVersion]),
        get("/v1/workflows/{name}/graph", VIEWER, workflows::graph, "Its graph, laid out: where each step stands")
            .asks::<workflows::VersionQuery>().json::<wire::Graph>().tagged()
            .refuses(&[NoSuchWorkflow, NoSuchVersion]),
        post("/v1/validate", VIEWER, validate::validate, "Say what is wrong with a document, and draw one that is good")
            .takes::<wire::Validate>().json::<wire::Validated>().ends_with_its_line(),
        get("/v1/workflows/{name}/plan", VIEWER, workflows::plan, "Its plan: order, levels, lanes").gives("application/json").tagged()
            .refuses(&[NoSuchWorkflow]),
        post("/v1/workflows/{name}/pause", OPERATOR, workflows::pause, "Let no run of a workflow start anything new").json::<wire::Paused>()
            .refuses(&[NoSuchWorkflow]),
        post("/v1/workflows/{name}/resume", OPERATOR, workflows::resume, "Let a paused workflow go on").json::<wire::Paused>()
            .refuses(&[NoSuchWorkflow]),

        post("/v1/workers", WORKER, workers::register, "Begin a session of a remote worker; it belongs to the token")
            .takes::<wire::Register>().created::<wire::Registered>(),
        post("/v1/workers/{session}/claim", WORKER, workers::claim, "Take tasks, and hear what is to be stopped; waits for something to tell")
            .takes::<wire::AskForWork>().json::<wire::Work>().ends_with_its_line(),
        post("/v1/workers/{session}/renew", WORKER, workers::renew, "Say that it lives; it is told all that it holds")
            .maybe_takes::<wire::Renew>().json::<wire::RenewedWorker>(),
        post("/v1/workers/{session}/start", WORKER, workers::start, "Say that tasks have begun").takes::<wire::Claims>().json::<wire::Fates>(),
        post("/v1/workers/{session}/log", WORKER, workers::log, "Add to what a task has printed").takes::<wire::AddToLog>().json::<wire::AddedToLog>(),
        post("/v1/workers/{session}/effects/begin", WORKER, workers::begin_effect, "Record that an effect begins, or get what is recorded of it")
            .takes::<wire::BeginEffect>().json::<wire::BegunEffect>(),
        post("/v1/workers/{session}/effects/commit", WORKER, workers::commit_effect, "Record what became of an effect")
            .takes::<wire::CommitEffect>().json::<wire::CommittedEffect>(),
        post("/v1/workers/{session}/finish", WORKER, workers::finish, "Say how tasks ended").takes::<wire::FinishTasks>().json::<wire::Fates>(),
        post("/v1/workers/{session}/give_back", WORKER, workers::give_back, "Return tasks that never began").takes::<wire::Claims>().json::<wire::Fates>(),
        delete("/v1/workers/{session}", WORKER, workers::leave, "End a session; what it still holds goes on elsewhere").json::<wire::Left>(),

        get("/v1/tokens", ADMIN, access::tokens, "Tokens, without their secrets; those in use first, by name").asks::<Paged>().json::<wire::TokenList>(),
        post("/v1/tokens", ADMIN, access::create, "Make a token; its secret is shown once").takes::<wire::CreateToken>().created::<wire::CreatedToken>()
            .refuses(&[TokenExists]),
        post("/v1/tokens/{name}/rotate", ADMIN, access::rotate, "Give a token a new secret, shown once; the old one ends at once or after a grace")
            .maybe_takes::<wire::RotateToken>().json::<wire::RotatedToken>()
            .refuses(&[NoSuchToken]),
        delete("/v1/tokens/{name}", ADMIN, access::revoke, "End a token, at once").json::<wire::Revoked>()
            .refuses(&[NoSuchToken]),
        get("/v1/secrets", ADMIN, secrets::list, "Secrets of the store by name, without their values").json::<wire::SecretList>(),
        put("/v1/secrets/{name}", ADMIN, secrets::set, "Set a secret; its value is told to nobody again")
            .takes::<wire::SetSecret>().json::<wire::SecretSet>(),
        delete("/v1/secrets/{name}", ADMIN, secrets::remove, "Remove a secret").json::<wire::SecretSet>()
            .refuses(&[NoSuchSecret]),
        get("/v1/audit", ADMIN, access::audit, "What was changed, by whom, newest first").asks::<access::AuditQuery>().json::<wire::AuditLog>(),
    ]
}

/// All of it, guarded.
pub(crate) fn router(app: &App) -> Router {
    let mut router: Router<App> = Router::new();
    for route in table() {
        let refuses = refusals(&route).into();
        let Route { rule, goes_on, router: handler, .. } = route;
        let guarded = Guarded { app: app.clone(), who: rule.who, path: rule.path, refuses, goes_on };
        router = router.route(rule.path, handler.route_layer(from_fn_with_state(guarded, admit)));
    }
    router
        .fallback(page::elsewhere)
        .method_not_allowed_fallback(no_method)
        // Answers are made anew for each who asks, and waited for: the best compression would take ten times as long for a third less.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(from_fn_with_state(app.clone(), front))
        .with_state(app.clone())
}

fn route<H, T>(method: HttpMethod, path: &'static str, who: Who, handler: H, summary: &'static str) -> Route
where
    H: Handler<T, App>,
    T: 'static,
{
    let (name, filter) = match method {
        HttpMethod::Post => ("POST", MethodFilter::POST),
        HttpMethod::Put => ("PUT", MethodFilter::PUT),
        HttpMethod::Delete => ("DELETE", MethodFilter::DELETE),
        _ => ("GET", MethodFilter::GET),
    };
    Route {
        rule: Rule { method: name, path, who },
        goes_on: name != "GET",
        method,
        summary,
        query: None,
        body: None,
        bytes: None,
        is_body_optional: false,
        refuses: &[],
        answer: Answers {
            status: 200,
            kind: "application/json",
            shape: None,
            also: None,
            is_ranged: false,
            is_tagged: false,
            or_status: None,
        },
        router: on(filter, handler),
    }
}

fn get<H: Handler<T, App>, T: 'static>(
    path: &'static str,
    who: Who,
    handler: H,
    summary: &'static str,
) -> Route {
    route(HttpMethod::Get, path, who, handler, summary)
}

fn post<H: Handler<T, App>, T: 'static>(
    path: &'static str,
    who: Who,
    handler: H,
    summary: &'static str,
) -> Route {
    route(HttpMethod::Post, path, who, handler, summary)
}

fn put<H: Handler<T, App>, T: 'static>(
    path: &'static str,
    who: Who,
    handler: H,
    summary: &'static str,
) -> Route {
    route(HttpMethod::Put, path, who, handler, summary)
}

fn delete<H: Handler<T, App>, T: 'static>(
    path: &'static str,
    who: Who,
    handler: H,
    summary: &'static str,
) -> Route {
    route(HttpMethod::Delete, path, who, handler, summary)
}

impl Route {
    fn asks<T: IntoParams>(mut self) -> Self {
        self.query = Some(|| T::into_params(|| Some(utoipa::openapi::path::ParameterIn::Query)));
        self
    }

    fn takes<T: ToSchema>(mut self) -> Self {
        self.body = Some(Shape::of::<T>);
        self
    }

    fn takes_bytes(mut self, kind: &'static str) -> Self {
        self.bytes = Some(kind);
        self
    }

    fn maybe_takes<T: ToSchema>(mut self) -> Self {
        self.is_body_optional = true;
        self.takes::<T>()
    }

    /// It changes nothing that is recorded, or waits for something: nobody is given work who hung up.
    fn ends_with_its_line(mut self) -> Self {
        self.goes_on = false;
        self
    }

    fn refuses(mut self, codes: &'static [Code]) -> Self {
        self.refuses = codes;
        self
    }

    fn also(mut self, kind: &'static str) -> Self {
        self.answer.also = Some(kind);
        self
    }

    fn ranged(mut self) -> Self {
        self.answer.is_ranged = true;
        self
    }

    fn or_status(mut self, status: u16) -> Self {
        self.answer.or_status = Some(status);
        self
    }

    fn json<T: ToSchema>(mut self) -> Self {
        self.answer.shape = Some(Shape::of::<T>);
        self
    }

    fn created<T: ToSchema>(mut self) -> Self {
        self.answer.status = 201;
        self.json::<T>()
    }

    fn tagged(mut self) -> Self {
        self.answer.is_tagged = true;
        self
    }

    fn gives(mut self, kind: &'static str) -> Self {
        self.answer.kind = kind;
        self
    }
}

impl Shape {
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut schemas = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut schemas);
        Self { name: T::name().into_owned(), schemas }
    }
}
