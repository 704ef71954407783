import { expect, test } from 'vitest';
import { type Greeting, greetingLines } from './greeting.ts';

const greeting: Greeting = {
  version: '1.0.0',
  home: '/home',
  firstStart: true,
  discovery: { providers: [], defaultModel: 'offline/offline' },
  agentId: 'default',
  address: 'http://127.0.0.1:4766',
  socketFile: '/home/gatehouse.sock',
  tokenExpression: '$(cat /home/token)',
  dashboard: { token: 'the-token' },
  warnings: [],
};
const plain = (text: string) => text;

test.each([
  { firstStart: true, terminal: true, supervised: false, shown: true },
  { firstStart: false, terminal: true, supervised: false, shown: true },
  { firstStart: true, terminal: false, supervised: false, shown: true },
  { firstStart: false, terminal: false, supervised: false, shown: false },
  { firstStart: true, terminal: false, supervised: true, shown: false },
])('the link to the dashboard holds the token only where a person reads it: %o', ({ firstStart, terminal, supervised, shown }) => {
  const lines = greetingLines({ ...greeting, firstStart }, { terminal, supervised, bold: plain, yellow: plain });
  expect(lines.find((line) => line.includes('open'))).toBe(`  open    http://127.0.0.1:4766/${shown ? '#token=the-token' : ''}`);
  expect(lines.join('\n').includes('the-token')).toBe(shown);
  expect(lines.at(-1)).toBe(greeting.address);
});
