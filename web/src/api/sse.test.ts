import { expect, test } from 'vitest';
import { Reader, type Message } from './sse';

const TEXT = 'retry: 1000\n: events\n\nid: 1\nevent: a\ndata: one\ndata:two\n\nid: 2\r\nevent: b\r\ndata: ü€😀\r\n\r\ndata: last\n\n';
const WANTED: Message[] = [
  { id: '1', event: 'a', data: 'one\ntwo' },
  { id: '2', event: 'b', data: 'ü€😀' },
  { id: '2', event: 'message', data: 'last' },
];

test('messages are the same wherever the text is cut', () => {
  for (let size = 1; size <= TEXT.length; size += 1) {
    const reader = new Reader();
    const found: Message[] = [];
    for (let at = 0; at < TEXT.length; at += size) found.push(...reader.push(TEXT.slice(at, at + size)));
    expect(found, `in pieces of ${size}`).toEqual(WANTED);
  }
});

test('a message without data is none', () => {
  expect(new Reader().push('id: 7\nevent: x\n\n')).toEqual([]);
});
