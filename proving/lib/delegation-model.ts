import * as z from 'zod';
import { type FakeAnswer, type FakeProvider, type FakeRequest, startFakeProvider } from '../../packages/testkit/src/fake-provider.ts';
import { noncesIn } from './provider.ts';

/** Tasks of the agents; a nonce follows each. */
export const tasks = {
  /** Starts a sub-agent that looks, and continues. */
  delegate: 'Please delegate',
  /** Starts another sub-agent that looks, and waits for it. */
  deeper: 'Look deeper for',
  look: 'Look closely for',
  /** Its model refuses. */
  fail: 'Fail over',
  /** Its model never answers. */
  hold: 'Hold on to',
  /** Refused the first time. */
  gather: 'Gather facts of',
  debate: 'Debate the facts of',
  vote: 'Vote about',
  report: 'Report about',
  message: 'A message about',
} as const;
type Task = keyof typeof tasks;

/** Returns an agent's answer at the end of a task. */
export const sayingOf = (task: Task, nonce: string): string => `${task} done: ${nonce}`;

const Body = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })) });

/** Starts a model that plays every agent, by the text of its task; each nonce is refused once. */
export function startDelegationModel(options: { readonly delayMs: number }): Promise<FakeProvider> {
  const refused = new Set<string>();
  return startFakeProvider({
    journal: 0,
    answer: (request: FakeRequest) => {
      if (!request.path.endsWith('/chat/completions')) return undefined;
      const { messages } = Body.parse(request.body);
      const texts = messages.map(({ role, content }) => ({ role, text: typeof content === 'string' ? content : JSON.stringify(content ?? '') }));
      const at = texts.findLastIndex(({ role }) => role === 'user');
      const asked = texts[at]?.text ?? '';
      const results = texts.slice(at + 1).flatMap(({ role, text }) => (role === 'tool' ? [text] : []));
      return { delayMs: options.delayMs, ...play(asked, results, refused) };
    },
  });
}

function play(asked: string, results: readonly string[], refused: Set<string>): FakeAnswer {
  // The announcement of a sub-agent begins with this, whatever it quotes.
  if (asked.startsWith('[Sub-agents that you asked for')) return { text: 'heard' };
  const { task, nonce } = taskIn(asked);
  const end = { text: sayingOf(task ?? 'message', nonce) };
  switch (task) {
    case 'delegate':
      return results.length === 0 ? spawn('deeper', nonce) : end;
    case 'deeper': {
      if (results.length === 0) return spawn('look', nonce);
      const runId = /sr_[0-9a-f-]{36}/.exec(results[0] ?? '')?.[0];
      if (results.length > 1 || runId === undefined) return end;
      return call('subagents', { action: 'wait', runIds: [runId], timeoutMs: 20_000 });
    }
    case 'look':
      return results.length === 0 ? call('ls', {}) : end;
    case 'fail':
      return { status: 400, error: { message: 'no such thing', type: 'invalid_request_error' } };
    case 'hold':
      return { hang: true };
    case 'gather':
      if (refused.has(nonce)) return end;
      refused.add(nonce);
      return { status: 400, error: { message: 'not now', type: 'invalid_request_error' } };
    default:
      return end;
  }
}

/** Returns the last task that a text names, with its nonce: earlier ones may be quoted. */
function taskIn(text: string): { readonly task: Task | undefined; readonly nonce: string } {
  const found = (Object.keys(tasks) as Task[])
    .map((task) => ({ task, at: text.lastIndexOf(`${tasks[task]} nonce-`) }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => b.at - a.at)[0];
  return found === undefined
    ? { task: undefined, nonce: noncesIn(text).at(-1) ?? 'nothing' }
    : { task: found.task, nonce: noncesIn(text.slice(found.at))[0] ?? 'nothing' };
}

const spawn = (task: Task, nonce: string): FakeAnswer => call('sessions_spawn', { task: `${tasks[task]} ${nonce}` });
const call = (name: string, args: object): FakeAnswer => ({ toolCalls: [{ id: `call_${name}`, name, arguments: JSON.stringify(args) }] });
