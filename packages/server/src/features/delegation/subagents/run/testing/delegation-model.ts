import type { FakeAnswer, FakeProvider } from '@gatehouse/testkit';

interface Message {
  readonly role: string;
  readonly text: string;
}

/** A request to the model: its task identifies the agent, and the results show what it has seen since. */
export interface Asked {
  /** The last message of a user. */
  readonly question: string;
  /** Results of the calls since then. */
  readonly results: readonly string[];
  readonly messages: readonly Message[];
  readonly system: string;
  readonly tools: readonly string[];
}

const textOf = (content: unknown): string => (typeof content === 'string' ? content : JSON.stringify(content ?? ''));

export function asked(body: unknown): Asked {
  const { messages = [], tools = [] } = body as {
    readonly messages?: readonly { readonly role: string; readonly content: unknown }[];
    readonly tools?: readonly { readonly function: { readonly name: string } }[];
  };
  const read = messages.map(({ role, content }) => ({ role, text: textOf(content) }));
  const at = read.findLastIndex(({ role }) => role === 'user');
  return {
    question: read[at]?.text ?? '',
    results: read.slice(at + 1).flatMap(({ role, text }) => (role === 'tool' ? [text] : [])),
    messages: read,
    system: read.flatMap(({ role, text }) => (role === 'system' ? [text] : [])).join('\n'),
    tools: tools.map(({ function: { name } }) => name),
  };
}

let calls = 0;
/** Returns an answer that calls a tool. */
export function call(name: string, args: unknown): FakeAnswer {
  calls += 1;
  return { toolCalls: [{ id: `c${calls}`, name, arguments: JSON.stringify(args) }] };
}

export type Answering = (what: Asked) => FakeAnswer | undefined;

/** Answers for the option `answer` of a provider, because runs at start call the model before anything else can be set. */
export const answering =
  (answer: Answering) =>
  ({ body }: { readonly body: unknown }) =>
    answer(asked(body));

/** Answers depending on the request. */
export function answerBy(provider: FakeProvider, answer: Answering): void {
  provider.setAnswer(answering(answer));
}

/** Returns the run id in a result of sessions_spawn. */
export const runIdIn = (text: string): string => /sr_[0-9a-f-]{36}/.exec(text)?.[0] ?? '';
