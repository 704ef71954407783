import * as z from 'zod';
import { type FakeAnswer, type FakeProvider, type FakeRequest, startFakeProvider } from '../../packages/testkit/src/fake-provider.ts';
import { noncesIn } from './provider.ts';

/** Tasks of the agents, each followed by a nonce, until they are stopped. */
export const duties = {
  /** Starts the other ones, one after the other and repeatedly, as far as it may. */
  lead: 'Lead the work on',
  /** Runs a command that does not end. */
  work: 'Run the work on',
  /** Runs a script that calls tools without end, in a separate process. */
  script: 'Script the work on',
  /** Starts a background command, with a child in a separate session, and ends its turn. */
  keep: 'Keep running the work on',
  /** The same, and then calls a tool again and again. */
  hold: 'Hold on to the work on',
  /** Runs a command that continues after the turn has ended. */
  leave: 'Leave behind the work on',
  /** Calls a tool that needs an approval. */
  ask: 'Ask about the work on',
  /** Calls a tool, and again. */
  loop: 'Loop over the work on',
  /** Never gets an answer from the model, which is out of order. */
  wait: 'Wait with the work on',
} as const;
type Duty = keyof typeof duties;

/** Seconds that the processes of a round sleep, which distinguishes them from all others. */
export const secondsOf = (nonce: string): string => `3600.${String(Number(/nonce-\d+-(\d+)/.exec(nonce)?.[1] ?? 0) + 1).padStart(6, '0')}`;

const Body = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })) });

export interface StopModel extends FakeProvider {
  /** When the model was last called for this nonce, as `performance.now()`. */
  lastAsked(nonce: string): number;
}

export async function startStopModel(): Promise<StopModel> {
  const asked = new Map<string, number>();
  let calls = 0;
  const call = (name: string, args: object): FakeAnswer => {
    calls += 1;
    return { toolCalls: [{ id: `call_${calls}`, name, arguments: JSON.stringify(args) }], delayMs: 30 };
  };
  // Not the same call each time, which would be stopped as a loop.
  const look = () => call('find', { pattern: `nothing-${calls}*` });
  const provider = await startFakeProvider({
    journal: 0,
    answer: (request: FakeRequest) => {
      if (!request.path.endsWith('/chat/completions')) return undefined;
      const { messages } = Body.parse(request.body);
      const texts = messages.map(({ role, content }) => ({ role, text: typeof content === 'string' ? content : JSON.stringify(content ?? '') }));
      const at = texts.findLastIndex(({ role }) => role === 'user');
      const question = texts[at]?.text ?? '';
      const nonce = noncesIn(question)[0] ?? '';
      const duty = (Object.keys(duties) as Duty[]).find((one) => question.includes(`${duties[one]} nonce-`));
      if (duty === undefined || question.startsWith('[Sub-agents')) return { text: 'heard' };
      asked.set(nonce, performance.now());
      const steps = texts.length - 1 - at;
      switch (duty) {
        case 'lead': {
          const next = (['work', 'script', 'loop'] as const)[Math.floor(steps / 2) % 3] ?? 'work';
          return call('sessions_spawn', { task: `${duties[next]} ${nonce}` });
        }
        case 'work':
          return call('exec', { argv: ['sleep', secondsOf(nonce)], timeoutMs: 300_000 });
        case 'script':
          return call('orchestrate', { script: scriptOf(nonce), language: 'js', timeoutMs: 300_000 });
        case 'keep':
        case 'hold':
          if (steps === 0)
            return call('exec', { argv: ['sh', '-c', `setsid sleep ${secondsOf(nonce)} & sleep ${secondsOf(nonce)}; :`], background: true });
          return duty === 'keep' ? { text: 'kept' } : look();
        case 'leave':
          return steps === 0 ? call('exec', { argv: ['sleep', secondsOf(nonce)], timeoutMs: 300_000 }) : { text: 'left' };
        case 'ask':
          return call('write', { path: `documents/${nonce}-${calls}.md`, content: 'asked' });
        case 'loop':
          return look();
        case 'wait':
          return { status: 503 };
      }
    },
  });
  return { ...provider, lastAsked: (nonce) => asked.get(nonce) ?? 0 };
}

/** Ends at the first refused call, and its process with it. */
const scriptOf = (nonce: string): string => `
import { spawn } from 'node:child_process';
spawn('sleep', ['${secondsOf(nonce)}'], { stdio: 'ignore' });
for (let n = 0; ; n += 1) {
  await tools.call('find', { pattern: 'nothing-' + n });
  await new Promise((resolve) => setTimeout(resolve, 150));
}`;
