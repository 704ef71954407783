import type { RunWork, SpecNode } from '../definition/definition.ts';

/** A run of an agent that a node requests. */
export interface AgentTask {
  /** The default agent when absent. */
  readonly agentId: string | undefined;
  readonly task: string;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
}

/** The result of a run. */
export interface RunResult {
  readonly ok: boolean;
  readonly text: string;
  /** Error of a failed run. */
  readonly error?: string | undefined;
  /** Whether it was stopped early. */
  readonly partial?: boolean | undefined;
}

/** Results of the steps of a node so far, in order; each holds those of its runs, in the order of the tasks. */
export type StepResults = readonly (readonly RunResult[])[];

export type Step =
  /** Runs in parallel. */
  | { readonly kind: 'run'; readonly tasks: readonly AgentTask[]; readonly progress: string }
  | { readonly kind: 'complete'; readonly output: string }
  | { readonly kind: 'fail'; readonly error: string };

export interface DriverInput {
  readonly node: Pick<SpecNode, 'agentId' | 'model' | 'maxSteps'>;
  /** Undefined for a single run with the task. */
  readonly work: RunWork | undefined;
  /** The complete input of the agents, with templates filled in. */
  readonly task: string;
  /** Fences the text of one agent for another. */
  readonly fence: (text: string, agentId: string) => string;
  /** Prepares further text of the author for agents; `task` is already prepared. */
  readonly own: (text: string) => string;
}

/** Maximum characters of other agents' text that one agent receives. */
const maxContext = 60_000;

/**
 * Returns what a node does next, based only on the results of its runs. After a restart the same results lead to the same step,
 * so no step needs a row of its state.
 */
export function nextStep(input: DriverInput, done: StepResults): Step {
  const { work } = input;
  switch (work?.type) {
    case undefined:
      return single(input, { agentId: input.node.agentId, model: input.node.model, maxSteps: input.node.maxSteps }, done);
    case 'agent':
      return single(
        input,
        { agentId: work.config.agent, model: work.config.model ?? input.node.model, maxSteps: work.config.max_steps ?? input.node.maxSteps },
        done,
      );
    case 'debate':
    case 'collaborate':
    case 'refine':
      return inTurn(input, planOf(work), done);
    case 'vote':
      return vote(input, work.config, done);
    case 'map-reduce':
      return mapReduce(input, work.config, done);
  }
}

/** Returns the output of a node that is stopped early. */
export function partialOutput({ work }: Pick<DriverInput, 'work'>, done: StepResults): string {
  switch (work?.type) {
    case 'debate':
    case 'collaborate':
      return transcriptOf(planOf(work).speakers, done.map(first));
    case 'refine':
      return done.map(first).findLast((said) => said?.text !== '' && said !== undefined)?.text ?? '';
    case 'vote':
      return verdicts(work.config.voters, done[0] ?? []);
    case 'map-reduce':
      return (
        done[1]?.[0]?.text ??
        verdicts(
          work.config.mappers.map(({ agent }) => agent),
          done[0] ?? [],
        )
      );
    default:
      return done[0]?.[0]?.text ?? '';
  }
}

function single({ task }: DriverInput, target: Omit<AgentTask, 'task'>, [said]: StepResults): Step {
  const result = said?.[0];
  if (result === undefined) return { kind: 'run', tasks: [{ ...target, task }], progress: 'works' };
  return result.ok ? { kind: 'complete', output: result.text } : { kind: 'fail', error: result.error ?? 'failed' };
}

interface Speaker {
  readonly agentId: string;
  /** Shown to people and in the transcript. */
  readonly name: string;
  /** Instructions for this speaker. */
  readonly part: string;
}

interface Plan {
  readonly speakers: readonly Speaker[];
  /** Whether each speaker sees the whole conversation, or only the previous contribution. */
  readonly sees: 'all' | 'last';
  /** Whether the result is the last contribution instead of the transcript. */
  readonly lastOnly: boolean;
}

type InTurn = Extract<RunWork, { type: 'debate' | 'collaborate' | 'refine' }>;

function planOf(work: InTurn): Plan {
  if (work.type === 'refine') {
    const speakers = work.config.reviewers.map((agentId, index) => ({
      agentId,
      name: `${agentId} (version ${index + 1})`,
      part: index === 0 ? 'Do the task.' : 'Improve the version below. Answer with the complete improved text and nothing else.',
    }));
    return { speakers, sees: 'last', lastOnly: true };
  }
  const isDebate = work.type === 'debate';
  const part = isDebate
    ? 'You take part in a debate about the task. State your position and respond to the others.'
    : 'You work on the task together with others. Add your part; do not repeat theirs.';
  const { agents, rounds } = work.config;
  const speakers: Speaker[] = Array.from({ length: rounds }, (_, round) =>
    agents.map((agentId) => ({ agentId, name: `${agentId} (round ${round + 1})`, part })),
  ).flat();
  const synthesizer = work.type === 'debate' ? work.config.synthesizer : undefined;
  if (synthesizer !== undefined)
    speakers.push({
      agentId: synthesizer,
      name: `${synthesizer} (synthesis)`,
      part: 'The debate below is over. Do the task based on its arguments.',
    });
  return { speakers, sees: 'all', lastOnly: synthesizer !== undefined };
}

/** Runs agents that speak one after the other. */
function inTurn({ task, fence, node }: DriverInput, { speakers, sees, lastOnly }: Plan, done: StepResults): Step {
  const said = done.map(first);
  const failed = said.findIndex((one) => one?.ok === false);
  if (failed !== -1) return { kind: 'fail', error: `${speakers[failed]?.name ?? 'an agent'}: ${said[failed]?.error ?? 'failed'}` };
  const next = speakers[said.length];
  if (next === undefined) return { kind: 'complete', output: lastOnly ? (said.at(-1)?.text ?? '') : transcriptOf(speakers, said) };
  const from = firstInContext(said, sees);
  const omitted = sees === 'all' && from > 0 ? [`[The first ${from} contributions are omitted.]`] : [];
  const context = said.slice(from).map((one, index) => {
    const speaker = speakers[from + index];
    return `${speaker?.name ?? ''}:\n${fence(one?.text ?? '', speaker?.agentId ?? '')}`;
  });
  const run = { agentId: next.agentId, model: node.model, maxSteps: node.maxSteps, task: [task, next.part, ...omitted, ...context].join('\n\n') };
  return { kind: 'run', tasks: [run], progress: `${next.name}, ${said.length + 1} of ${speakers.length}` };
}

/** Returns the index of the first contribution that the next speaker receives; the oldest are dropped. */
function firstInContext(said: readonly (RunResult | undefined)[], sees: Plan['sees']): number {
  if (sees === 'last') return Math.max(0, said.length - 1);
  let characters = 0;
  const tooMuch = said.findLastIndex((one) => (characters += one?.text.length ?? 0) > maxContext);
  return Math.min(tooMuch + 1, Math.max(0, said.length - 1));
}

const first = (said: readonly RunResult[]) => said[0];

function transcriptOf(speakers: readonly Speaker[], said: readonly (RunResult | undefined)[]): string {
  return said.flatMap((one, index) => (one === undefined || one.text === '' ? [] : [`### ${speakers[index]?.name ?? ''}\n${one.text}`])).join('\n\n');
}

type ConfigOf<T extends RunWork['type']> = Extract<RunWork, { type: T }>['config'];

function vote({ task, node, own }: DriverInput, config: ConfigOf<'vote'>, [said]: StepResults): Step {
  const { voters, prompt_suffix: suffix, verdict_format: format, min_voters: least = voters.length } = config;
  if (said === undefined) {
    const more = [suffix, format === undefined ? undefined : `Give your verdict in this form: ${format}`];
    const parts = [task, ...more.map((text) => (text === undefined ? undefined : own(text)))];
    const common = { model: node.model, maxSteps: node.maxSteps, task: parts.filter((part) => part !== undefined).join('\n\n') };
    return { kind: 'run', tasks: voters.map((agentId) => ({ agentId, ...common })), progress: `${voters.length} voters answer` };
  }
  const answered = said.filter(({ ok }) => ok).length;
  if (answered < least)
    return { kind: 'fail', error: `${answered} of ${voters.length} voters answered, ${least} are needed: ${errorsOf(voters, said)}` };
  return { kind: 'complete', output: verdicts(voters, said) };
}

function mapReduce({ task, fence, own, node }: DriverInput, config: ConfigOf<'map-reduce'>, [mapped, reduced]: StepResults): Step {
  const { mappers, reducer, reducer_prompt: prompt } = config;
  const common = { model: node.model, maxSteps: node.maxSteps };
  const names = mappers.map(({ agent }) => agent);
  if (mapped === undefined)
    return {
      kind: 'run',
      tasks: mappers.map(({ agent, task_suffix: suffix }) => ({
        ...common,
        agentId: agent,
        task: suffix === undefined ? task : `${task}\n\nYour part of it: ${own(suffix)}`,
      })),
      progress: `${mappers.length} mappers work`,
    };
  if (mapped.some(({ ok }) => !ok)) return { kind: 'fail', error: `mappers failed: ${errorsOf(names, mapped)}` };
  if (reduced === undefined) {
    const parts = mapped.map(({ text }, index) => `Part ${index + 1}:\n${fence(text, names[index] ?? '')}`);
    const ask = prompt !== undefined ? own(prompt) : 'Others did the parts below. Combine them into one result.';
    return {
      kind: 'run',
      tasks: [{ ...common, agentId: reducer, task: [task, ask, ...parts].join('\n\n') }],
      progress: `${reducer} combines the parts`,
    };
  }
  const result = reduced[0];
  return result?.ok === true ? { kind: 'complete', output: result.text } : { kind: 'fail', error: `${reducer}: ${result?.error ?? 'failed'}` };
}

function verdicts(names: readonly string[], said: readonly RunResult[]): string {
  return said.flatMap(({ ok, text }, index) => (ok || text !== '' ? [`### ${names[index] ?? ''}\n${text}`] : [])).join('\n\n');
}

function errorsOf(names: readonly string[], said: readonly RunResult[]): string {
  return said.flatMap(({ ok, error }, index) => (ok ? [] : [`${names[index] ?? ''}: ${error ?? 'failed'}`])).join('; ');
}
