import { expect, test } from 'vitest';
import { type Greeting, greetingLines, setupCommand } from './greeting.ts';

const greeting: Greeting = {
  version: '1.0.0',
  home: '/home',
  firstStart: true,
  discovery: { providers: [], defaultModel: 'offline/offline' },
  setup: undefined,
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

test('a daemon without a model names the command that connects one, and the link that does', () => {
  const style = { terminal: true, supervised: false, bold: plain, yellow: plain };
  const line = (part: Partial<Greeting>) => greetingLines({ ...greeting, ...part }, style).find((one) => one.startsWith('  setup'));
  expect(line({})).toBeUndefined();
  expect(line({ setup: 'gatehouse setup' })).toBe(
    '  setup   no model is connected yet: run `gatehouse setup` in another terminal, or open the link below',
  );
  expect(line({ setup: 'gatehouse setup', dashboard: undefined })).toMatch(/terminal$/);
  expect(setupCommand('/u/.gatehouse', '/u/.gatehouse', {})).toBe('gatehouse setup');
  expect(setupCommand('/u/other', '/u/.gatehouse', { npm_lifecycle_event: 'start' })).toBe('npx gatehouse setup --home /u/other');
});
