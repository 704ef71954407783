import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../proving/lib/daemon.ts';
import { pdf } from './lib/pdf.ts';
import { type Product, startProduct } from './lib/product.ts';
import { openTerminal, scriptPath, type Terminal } from './lib/terminal.ts';

const cli = join(root, 'dist', 'cli.js');
const call = (name: string, args: object) => ({ id: `call-${name}`, name, arguments: JSON.stringify(args) });

/** Tasks of the chat in a terminal, with a bound on what a person does beyond typed text: keys such as Enter, Esc and Tab. */
describe.skipIf(scriptPath === undefined)('journeys in the terminal', () => {
  let product: Product;
  let terminal: Terminal;
  let env: Record<string, string>;
  let inputs = 0;
  beforeAll(async () => {
    product = await startProduct({
      provider: {
        answer: ({ body }) => (JSON.stringify(body).split('"role":"user"').at(-1)?.includes('at length') ? { text: words, paceMs: 20 } : undefined),
      },
      config: {
        providers: (url) => ({ other: { type: 'openai-compatible', baseUrl: url, apiKey: 'k', models: [{ id: 'other-model' }] } }),
        agents: { default: { model: 'local/test-model', tools: { profile: 'coding' } } },
        approvals: { rules: [{ tools: ['write'], action: 'ask' }] },
      },
    });
    await product.call('agent.execute', { message: 'When do storks arrive?', sessionKey: 'terminal:storks' });
    env = {
      PATH: process.env['PATH'] ?? '',
      HOME: product.home,
      TERM: 'xterm',
      GATEHOUSE_HOME: product.home,
      GATEHOUSE_URL: product.url,
      GATEHOUSE_TOKEN: product.token,
    };
    terminal = open('chat');
    inputs = 1;
    await terminal.sees('Chatting with');
  });
  afterAll(async () => {
    terminal?.type('/exit\r');
    await terminal?.exit;
    await product?.[Symbol.asyncDispose]();
  });

  const words = Array.from({ length: 400 }, (_, at) => `word${at} `);
  const open = (...args: string[]) => openTerminal([process.execPath, cli, ...args], { env, cwd: product.home });
  const press = (key: string): void => {
    inputs += 1;
    terminal.type(key);
  };
  /** Types a line and sends it. */
  const enter = (text: string): void => {
    terminal.type(text);
    press('\r');
  };
  /** Returns the inputs since the last journey. */
  const taken = (): number => {
    const count = inputs;
    inputs = 0;
    return count;
  };

  test('the first chat takes two inputs, from the command to the answer', async () => {
    enter('Good morning');
    await terminal.sees('the gateway answers');
    await terminal.sees(' tokens');
    expect(taken()).toBeLessThanOrEqual(2);
  });

  test('an answer of last week is found, and its conversation continued, with four inputs', async () => {
    enter('/find storks');
    await terminal.sees('/sessions NUMBER continues one.');
    enter('/sessions 1');
    await terminal.sees('> When do storks arrive?');
    await terminal.sees('the gateway answers');
    expect(taken()).toBeLessThanOrEqual(4);
  });

  test('a call is approved with two inputs', async () => {
    product.provider.queue({ toolCalls: [call('write', { path: 'note.md', content: 'Storks\n' })] }, { text: 'It is written.' });
    enter('Write a note');
    await terminal.sees('May the agent do this?');
    taken();
    press('y');
    await terminal.sees('Allowed.');
    await terminal.sees('It is written.');
    expect(taken()).toBeLessThanOrEqual(2);
    await terminal.sees(' tokens');
  });

  test('the model is switched with three inputs', async () => {
    enter('/model other/other-model');
    await terminal.sees('uses other/other-model now');
    expect(taken()).toBeLessThanOrEqual(3);
    enter('Who answers?');
    await terminal.sees(' tokens');
    expect(product.provider.requests.at(-1)?.body).toMatchObject({ model: 'other-model' });
    taken();
  });

  test('a PDF is attached and asked about with three inputs', async () => {
    await writeFile(join(product.home, 'tides.pdf'), pdf('The tide turns at noon.'));
    terminal.type('/attach tid');
    press('\t');
    await terminal.sees('tides.pdf');
    press('\r');
    await terminal.sees('Attached to the next message: tides.pdf');
    enter('When does the tide turn?');
    await terminal.sees(' tokens');
    expect(taken()).toBeLessThanOrEqual(3);
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('The tide turns at noon.');
  });

  test('a running answer is stopped and steered with three inputs', async () => {
    enter('Write at length');
    await terminal.sees('word2 ');
    enter('Only the first line');
    press('\u001b');
    await terminal.sees('> Only the first line');
    await terminal.sees('the gateway answers');
    await terminal.sees(' tokens');
    expect(taken()).toBeLessThanOrEqual(3);
  });

  test('a conversation is shared as a file with three inputs', async () => {
    const file = join(product.home, 'storks.json');
    await using shell = open('sessions', 'export', 'terminal:storks', '--file', file);
    inputs += 1;
    expect(await shell.exit).toBe(0);
    expect(taken()).toBeLessThanOrEqual(3);
    expect(await readFile(file, 'utf8')).toContain('When do storks arrive?');
  });

  test('the chat recovers without any input when the daemon restarts', async () => {
    await product.restart();
    await terminal.sees('Connected again.');
    expect(taken()).toBe(0);
    enter('And where do they sleep?');
    await terminal.sees('the gateway answers');
  });
});
