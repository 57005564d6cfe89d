// Workflows that the tests of the run page run for real. Those that must stay as they are wait for a file that a test makes.
import { binary } from '../harness/program';

/** Waits until the file is there: the test decides when a step ends, and no clock does. */
export const until = (file: string): string => `while [ ! -e ${file} ]; do sleep 0.05; done`;

/** Everything at once: a group, a list, an approval, colours, a failure that is passed, an output. */
export const rich = (directory: string): string => `
name: rich
max_parallel: 4
on_failure: continue
steps:
  fetch:
    run: |
      printf '\\033[32mfetched\\033[0m 3 files\\n'
      printf '\\033[1;31merror-like\\033[0m \\033]8;;https://evil.example\\033\\\\link\\033]8;;\\033\\\\ <b>bold</b>\\n' >&2
      echo '{"files":["north","south","west"],"note":"<img src=x onerror=alert(1)>"}' > "$LANEWAY_OUTPUT"
  lint: {needs: fetch, run: "echo ok"}
  test: {needs: fetch, run: "echo ok"}
  parse:
    needs: fetch
    for_each: "\${{ steps.fetch.output.files }}"
    env: {FILE: "\${{ item }}"}
    run: 'echo "parsing $FILE"'
  slow: {needs: fetch, run: "${until(`${directory}/go`)}"}
  bad: {needs: fetch, retry: {max: 1, backoff: 10ms}, run: "echo attempt $LANEWAY_ATTEMPT; exit 3"}
  behind: {needs: bad, run: "echo behind"}
  approve: {needs: [lint, test], wait: {signal: approved, timeout: 24h}}
  publish: {needs: [approve, parse], run: "echo published"}
groups:
  quality: {steps: [lint, test]}
`;

export const levels = `
name: levels
execution: levels
steps:
  one: {run: "echo 1"}
  two: {needs: one, run: "echo 2"}
  three: {needs: two, run: "echo 3"}
`;

export const slow = (directory: string): string => `
name: slow
steps:
  wait: {run: "${until(`${directory}/go`)}"}
  behind: {needs: wait, run: "echo behind"}
`;

/** A list of `n` items that do next to nothing. */
export const list = (n: number): string => `
name: list
max_parallel: 8
steps:
  each: {for_each: "\${{ ${n} | range }}", run: "true"}
`;

/** Prints `mib` MiB of numbered lines, some in colour. */
export const big_log = (mib: number): string => `
name: big-log
steps:
  print:
    run: |
      awk 'BEGIN { for (n = 1; n <= ${Math.floor((mib * 1024 * 1024) / 91)}; n++) printf "%09d %s the quick brown fox jumps over the lazy dog and runs on and on and on %s\\n", n, "\\033[36m", "\\033[0m" }'
`;

export const merging = `
name: merging
groups:
  both: {steps: [left, right], merge: workspace, isolate: true}
steps:
  left: {run: "echo left > shared.txt; echo l > left.txt"}
  right: {run: "echo right > shared.txt"}
  behind: {needs: both, run: "echo behind"}
`;

export const effects = `
name: effects
steps:
  charge: {run: "${binary()} effect charge -- echo charged"}
`;

export const artifacts = `
name: artifacts
steps:
  report: {run: "echo '<h1>report</h1>' > report.html", artifacts: [report.html]}
`;
