// Workflows that tests run: small, fast, and each with something to see.

/** Succeeds within a moment: a diamond with a group and typed parameters. */
export const GOOD = `name: good
params:
  who: {type: string, default: world, description: Who is greeted}
  count: {type: integer, default: 2}
  size: {type: string, default: small, enum: [small, large]}
  dry: {type: boolean, default: false}
  list: {type: list, default: [1, 2]}
steps:
  fetch: {run: 'echo fetched'}
  lint: {needs: [fetch], env: {WHO: "\${{ params.who }}"}, run: 'echo "hello $WHO"'}
  test:
    needs: [fetch]
    run: |
      echo tested
      echo '{"ok": true}' > "$LANEWAY_OUTPUT"
  report: {needs: [lint, test], run: 'echo done'}
groups:
  quality: {steps: [lint, test]}
`;

/** Fails in the middle; what is behind is skipped. */
export const BAD = `name: bad
on_failure: continue
steps:
  build: {run: 'echo built'}
  ship: {needs: [build], run: 'echo "cannot reach the harbour" >&2; exit 3'}
  tell: {needs: [ship], run: 'echo told'}
`;

/** Runs until it is canceled: one step holds a lock and a limit, another run waits for both. */
export const LONG = `name: long
limits: {berth: 1}
steps:
  hold: {run: 'echo holding; sleep 600', lock: db/orders, limits: [berth]}
  after: {needs: [hold], run: 'echo after'}
`;

/** Waits for a person. */
export const ASKS = `name: asks
steps:
  prepare: {run: 'echo ready'}
  approve: {needs: [prepare], wait: {signal: approved, timeout: 24h}}
  deploy: {needs: [approve], run: 'echo deployed'}
`;

/** Starts by itself, some day. */
export const NIGHTLY = `name: nightly
schedule: {cron: "0 2 * * *", timezone: Europe/Berlin}
steps:
  all: {run: 'echo nightly'}
`;
