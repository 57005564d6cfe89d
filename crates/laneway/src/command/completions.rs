//! `laneway completions`: a script that a shell loads to complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Context;
use crate::cli::Cli;
use crate::exit::Exit;

/// Beside commands and flags, what the store knows: `complete.rs`.
const BASH: &str = r#"
_laneway_with_runs() {
    _laneway "$@"
    local words
    words=$(laneway __complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null) || return 0
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
    return 0
}
complete -F _laneway_with_runs -o bashdefault -o default laneway
"#;

const ZSH: &str = r#"
_laneway_with_runs() {
    local -a found
    found=(${(f)"$(laneway __complete $((CURRENT - 1)) "${words[@]}" 2>/dev/null)"})
    (( $#found )) && compadd -a found && return
    _laneway "$@"
}
compdef _laneway_with_runs laneway
"#;

const FISH: &str = r#"
function __laneway_runs
    set -l typed (commandline -opc)
    laneway __complete (count $typed) $typed (commandline -ct) 2>/dev/null
end
complete -c laneway -a '(__laneway_runs)'
"#;

fn runs_and_steps(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    }
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway completions bash > ~/.local/share/bash-completion/completions/laneway"
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "laneway", &mut script);
    script.extend_from_slice(runs_and_steps(args.shell).as_bytes());
    context.printer.bytes(&script)?;
    Ok(Exit::Succeeded)
}
