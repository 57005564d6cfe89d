//! What refusing hostile documents may take of memory. Alone in its file, because the peak is that
//! of the whole process.

use laneway_core::definition::{Source, compile};

/// Peak resident memory of this process in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("it has a peak");
    let kibibytes: u64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of kB");
    kibibytes / 1024
}

fn bomb() -> String {
    let mut text = String::from("x-0: &a0 [a, a]\n");
    for level in 1..60 {
        let before = level - 1;
        text.push_str(&format!("x-{level}: &a{level} [*a{before}, *a{before}]\n"));
    }
    text
}

fn wrong_everywhere() -> String {
    let steps = (0..300_000).map(|step| format!(" s{step}: {{rum: x}}\n"));
    std::iter::once("steps:\n".to_owned()).chain(steps).collect()
}

#[test]
fn hostile_documents_are_refused_within_256_mebibytes() {
    let long_line = || format!("steps: {{a: {{run: \"{}\", b: 1}}}}", "x".repeat(30 << 20));
    // Written one at a time, so that only one of them counts.
    let documents: [(&str, &dyn Fn() -> String); 7] = [
        ("a bomb of aliases", &bomb),
        ("deep nesting", &|| "[".repeat(1_000_000)),
        ("many values", &|| "- a\n".repeat(8_000_000)),
        ("many empty lists", &|| format!("[{}]", "[],".repeat(10_000_000))),
        ("many errors", &wrong_everywhere),
        ("a long line", &long_line),
        ("a huge document", &|| "#".repeat(100 << 20)),
    ];
    for (what, write) in documents {
        let source = Source { file: "hostile.yaml".into(), default_name: "hostile".into(), text: write() };
        let refusal = compile(&source).expect_err("it must be refused");
        drop(refusal.render(true));
        let peak = peak();
        assert!(peak < 256, "{what} took the peak to {peak} MiB");
    }
}
