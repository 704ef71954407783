import type { FakeAnswer, FakeRequest } from '../../packages/testkit/src/fake-provider.ts';

/** One step of a scripted model: the arguments of a call of `terminal`, and what its result must show. */
interface Step {
  readonly args: object;
  readonly shows: RegExp;
}

/** How long a wait may take on a busy machine: a drive ends as soon as what it waits for appears. */
const timeoutMs = 120_000;

const open = (argv: readonly string[], pattern: string, more: object = {}): Step => ({
  args: { action: 'open', argv, pattern, timeoutMs, ...more },
  shows: /the pattern matched/,
});
const type = (text: string, pattern: string, shows: RegExp): Step => ({ args: { action: 'type', text, enter: true, pattern, timeoutMs }, shows });
const press = (keys: readonly string[], pattern: string): Step => ({
  args: { action: 'press', keys, pattern, timeoutMs },
  shows: /the pattern matched/,
});
const exits: Step = { args: { action: 'wait', exit: true, timeoutMs }, shows: /: exit code 0,/ };

/** Scripts for real programs. Every wait is for what the program shows, so none depends on the speed of the machine. */
export const terminalScripts = {
  python3: (round: number): readonly Step[] => [
    open(['python3', '-q'], '>>> $'),
    // An empty prompt stays on the screen, and an answer that takes a while: only what follows the input is the answer.
    press(['enter'], '^>>> $'),
    type(`__import__('time').sleep(0.3); print(${round} * 1000 + 7)`, '^>>> $', new RegExp(`\\n${round * 1000 + 7}\\n>>> $`)),
    type('def double(x):\n    return x * 2\n', '^>>> $', />>> $/),
    type('double(21)', '^>>> $', /\n42\n>>> $/),
    type('exit()', '$', /./),
    exits,
  ],
  vi: (round: number): readonly Step[] => [
    // Without its own settings and history, in the mode in which it shows what it does.
    open(['vi', '-N', '-u', 'NONE', '-i', 'NONE', `note-${round}.txt`], `note-${round}\\.txt" \\[New`, { cwd: 'projects' }),
    press(['i'], '-- INSERT --'),
    { args: { action: 'type', text: `Round ${round}\nsecond line`, pattern: 'second line', timeoutMs }, shows: /the pattern matched/ },
    // The ruler and the mode line change when the editor has left the insert mode.
    press(['escape', ':'], '^:'),
    type('wq', '$', /./),
    exits,
    {
      args: { action: 'open', argv: ['cat', `note-${round}.txt`], cwd: 'projects', pattern: 'second line$', timeoutMs },
      shows: new RegExp(`Round ${round}\\nsecond line`),
    },
  ],
  sqlite3: (round: number): readonly Step[] => [
    open(['sqlite3', '-interactive', '/tmp/test.db'], '^sqlite> $'),
    type(`create table t(n integer); insert into t values (${round}), (40);`, '^sqlite> $', /sqlite> $/),
    type('select sum(n)', '\\.\\.\\.> $', /\.\.\.> $/),
    type('from t;', '^sqlite> $', new RegExp(`\\n${round + 40}\\nsqlite> $`)),
    type('.exit', '$', /./),
    exits,
  ],
} as const satisfies Record<string, (round: number) => readonly Step[]>;

export type TerminalProgram = keyof typeof terminalScripts;

/** A model that follows a script; `outcome` is filled in when it is at its end, or met something else. */
export class ScriptedDriver {
  readonly #steps: readonly Step[];
  outcome: string | undefined;

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
  }

  answer({ body }: FakeRequest): FakeAnswer {
    const { messages = [] } = body as { readonly messages?: readonly { readonly role: string; readonly content: unknown }[] };
    const results = messages
      .slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => textOf(content));
    const last = results.at(-1) ?? '';
    const step = this.#steps[results.length - 1];
    if (step !== undefined && !step.shows.test(last)) {
      this.outcome = `step ${results.length} shows ${JSON.stringify(last)}`;
      return { text: 'I give up.' };
    }
    const next = this.#steps[results.length];
    if (next === undefined) {
      this.outcome = 'done';
      return { text: 'Done.' };
    }
    const id = /term_[0-9a-f-]{36}/.exec(results[0] ?? '')?.[0];
    const args = 'argv' in next.args ? next.args : { ...next.args, id };
    return { toolCalls: [{ id: `call_${results.length}`, name: 'terminal', arguments: JSON.stringify(args) }] };
  }
}

/** Returns a result without the lines that fence it. */
function textOf(content: unknown): string {
  const text = typeof content === 'string' ? content : (JSON.stringify(content) ?? '');
  return text.replace(/\n<<<END-UNTRUSTED-TEXT [0-9a-f]+>>>\s*$/u, '');
}
