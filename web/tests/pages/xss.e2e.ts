// What users can name, print and say is shown as text, whatever it is.
import { expect, test } from 'vitest';
import { site } from '../harness/site';

/** Each would leave a mark: an element with `data-hit`, or `window.hit`. */
const CORPUS = [
  '<img src=x data-hit onerror="window.hit=1">',
  '<script data-hit>window.hit=1</script>',
  '"><svg data-hit onload="window.hit=1">',
  '\'"--></style></script><b data-hit onclick=window.hit=1>',
  '</textarea><iframe data-hit srcdoc="<script>parent.hit=1</script>">',
  '<a data-hit href="javascript:window.hit=1">x</a>',
  '{@html "<i data-hit>"} {{constructor.constructor("window.hit=1")()}} ${window.hit=1}',
  '<math><mi data-hit xlink:href="javascript:window.hit=1">',
  '\u202e\u0000<style data-hit>@import "//x";</style>',
];
const ALL = CORPUS.join(' ');
/** What a document may have in it. */
const PLAIN = ALL.replaceAll(/[\u0000\u202e]/g, '');

const DOCUMENT = `name: hostile
params:
  text: {type: string, default: ${JSON.stringify(PLAIN)}, description: ${JSON.stringify(PLAIN)}}
  one: {type: string, default: a, enum: [a, ${JSON.stringify(CORPUS[0])}]}
steps:
  say:
    env: {TEXT: "\${{ params.text }}"}
    run: |
      printf '%s\\n' "$TEXT"
      printf '%s\\n' "$TEXT" >&2
      python3 -c 'import json, os; print(json.dumps({"text": os.environ["TEXT"]}))' > "$LANEWAY_OUTPUT" || true
      exit 7
  hold:
    lock: "\${{ params.text }}"
    run: sleep 600
`;

const here = site({ args: ['--label', 'zone=eu'] }, async (program) => {
  await program.apply(DOCUMENT);
  await program.apply(DOCUMENT + `# ${PLAIN}\n`);
  for (const [index, text] of CORPUS.entries()) {
    // Some names are refused, and that is good too.
    await program.ask('POST', '/v1/tokens', { name: text, role: 'viewer' }).catch(() => undefined);
    await program.ask('PUT', `/v1/limits/${encodeURIComponent(text)}`, { value: '3' }).catch(() => undefined);
    await program.ask('POST', '/v1/workflows', { document: 'steps: {a: {run: "true"}}', name: text }).catch(() => undefined);
    await program.submit({ workflow: 'hostile' }, index === 0 ? {} : { text: text.replaceAll('\u0000', '') }).catch(() => undefined);
  }
  const { runs } = await program.ask<{ runs: { run: string }[] }>('GET', '/v1/runs');
  for (const { run } of runs.slice(0, 2)) await program.event(run, (event) => event['event'] === 'task_finished').catch(() => undefined);
});

test('nothing that users write becomes a part of a page', async () => {
  const { runs } = await here.program.ask<{ runs: { run: string }[] }>('GET', '/v1/runs');
  const run = runs.at(-1)?.run ?? '';
  const paths = [
    '/',
    '/workflows',
    '/workflows/hostile',
    '/workflows/hostile?run=1',
    '/workflows/hostile/source',
    '/workflows/hostile/versions',
    '/workflows/hostile/runs',
    '/runs',
    `/runs?q=${encodeURIComponent(ALL)}&workflow=${encodeURIComponent(ALL)}`,
    `/runs/${run}`,
    `/runs/${run}?tab=tasks`,
    `/runs/${run}?tab=events`,
    `/runs/${run}?tab=outputs`,
    `/runs/${run}/tasks/say`,
    `/runs/${encodeURIComponent(ALL)}`,
    `/workflows/${encodeURIComponent(ALL)}`,
    `/limits/${encodeURIComponent(ALL)}`,
    `/${encodeURIComponent(ALL)}`,
    '/nodes',
    '/pools',
    '/limits',
    '/triggers',
    '/tokens',
    '/audit',
  ];
  for (const path of paths) {
    const tab = await here.open(path, { width: 800, expected: /status of 4\d\d/ });
    await tab.page.locator('main h1, main [role=alert]').first().waitFor();
    await tab.page.waitForTimeout(400);
    const found = await tab.page.evaluate(() => ({
      hit: 'hit' in window,
      elements: document.querySelectorAll('[data-hit]').length,
      links: [...document.querySelectorAll('a')].filter((link) => !/^[/#?]|^(https?|blob):/.test(link.getAttribute('href') ?? '/')).length,
    }));
    expect(found, path).toEqual({ hit: false, elements: 0, links: 0 });
    expect(await tab.overflow(), path).toBeLessThanOrEqual(0);
    tab.expect_clean();
    await tab.close();
  }
});

test('and it is there to be read, as it was written', async () => {
  const form = await here.open('/workflows/hostile?run=1');
  await form.page.getByText(CORPUS[0] ?? '', { exact: false }).first().waitFor();
  await form.close();
  const locks = await here.open('/limits');
  // A limit with such a name is refused; a lock may be called anything.
  await locks.page.getByText(CORPUS[1] ?? '', { exact: false }).first().waitFor();
  await locks.close();
});
