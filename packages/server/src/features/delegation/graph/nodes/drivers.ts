import type { RunWork, SpecNode } from '../definition/definition.ts';

/** A run of an agent that a node wants. */
export interface Wish {
  /** The default agent when absent. */
  readonly agentId: string | undefined;
  readonly task: string;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
}

/** What a run gave. */
export interface Said {
  readonly ok: boolean;
  readonly text: string;
  /** Of one that failed. */
  readonly error?: string | undefined;
  /** It was ended early. */
  readonly partial?: boolean | undefined;
}

/** Results of the steps of a node so far, in order; in each those of its runs, in the order of the wishes. */
export type Done = readonly (readonly Said[])[];

export type Step =
  /** Runs beside each other. */
  | { readonly kind: 'run'; readonly wishes: readonly Wish[]; readonly progress: string }
  | { readonly kind: 'complete'; readonly output: string }
  | { readonly kind: 'fail'; readonly error: string };

export interface DriverInput {
  readonly node: Pick<SpecNode, 'agentId' | 'model' | 'maxSteps'>;
  /** Undefined: one run with the task. */
  readonly work: RunWork | undefined;
  /** Filled, with everything that the agents are told. */
  readonly task: string;
  /** Makes text of one agent fit to be read by another. */
  readonly fence: (text: string, agentId: string) => string;
  /** Further words of the author, as agents are to read them; `task` has been through it. */
  readonly own: (text: string) => string;
}

/** Characters of what others said that one agent is told. */
const maxHeard = 60_000;

/**
 * What a node does next, by nothing but what its runs have given so far: after a restart the same question has the same
 * answer, so that no step needs a row of its own to go on from.
 */
export function nextStep(input: DriverInput, done: Done): Step {
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

/** What a node that is ended early has to show. */
export function soFar({ work }: Pick<DriverInput, 'work'>, done: Done): string {
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

function single({ task }: DriverInput, wish: Omit<Wish, 'task'>, [said]: Done): Step {
  const result = said?.[0];
  if (result === undefined) return { kind: 'run', wishes: [{ ...wish, task }], progress: 'works' };
  return result.ok ? { kind: 'complete', output: result.text } : { kind: 'fail', error: result.error ?? 'failed' };
}

interface Speaker {
  readonly agentId: string;
  /** For people and for the transcript. */
  readonly name: string;
  /** What this one is to do with what was said. */
  readonly part: string;
}

interface Plan {
  readonly speakers: readonly Speaker[];
  /** Whether each sees all that was said, or only what the one before made. */
  readonly sees: 'all' | 'last';
  /** The result is what the last one said, and not the transcript. */
  readonly lastOnly: boolean;
}

type InTurn = Extract<RunWork, { type: 'debate' | 'collaborate' | 'refine' }>;

function planOf(work: InTurn): Plan {
  if (work.type === 'refine') {
    const speakers = work.config.reviewers.map((agentId, index) => ({
      agentId,
      name: `${agentId} (version ${index + 1})`,
      part: index === 0 ? 'Do the task.' : 'Improve the version below. Answer with the whole improved text and nothing else.',
    }));
    return { speakers, sees: 'last', lastOnly: true };
  }
  const isDebate = work.type === 'debate';
  const part = isDebate
    ? 'You take part in a debate about the task. Say what you hold to be right, and answer what the others said.'
    : 'You work on the task together with others. Add your part; do not repeat what is there.';
  const { agents, rounds } = work.config;
  const speakers: Speaker[] = Array.from({ length: rounds }, (_, round) =>
    agents.map((agentId) => ({ agentId, name: `${agentId} (round ${round + 1})`, part })),
  ).flat();
  const synthesizer = work.type === 'debate' ? work.config.synthesizer : undefined;
  if (synthesizer !== undefined)
    speakers.push({
      agentId: synthesizer,
      name: `${synthesizer} (synthesis)`,
      part: 'The debate below is over. Do the task by what was said in it.',
    });
  return { speakers, sees: 'all', lastOnly: synthesizer !== undefined };
}

/** Agents that speak one after the other. */
function inTurn({ task, fence, node }: DriverInput, { speakers, sees, lastOnly }: Plan, done: Done): Step {
  const said = done.map(first);
  const failed = said.findIndex((one) => one?.ok === false);
  if (failed !== -1) return { kind: 'fail', error: `${speakers[failed]?.name ?? 'an agent'}: ${said[failed]?.error ?? 'failed'}` };
  const next = speakers[said.length];
  if (next === undefined) return { kind: 'complete', output: lastOnly ? (said.at(-1)?.text ?? '') : transcriptOf(speakers, said) };
  const from = firstHeard(said, sees);
  const omitted = sees === 'all' && from > 0 ? [`[The first ${from} contributions are left out.]`] : [];
  const heard = said.slice(from).map((one, index) => {
    const speaker = speakers[from + index];
    return `${speaker?.name ?? ''}:\n${fence(one?.text ?? '', speaker?.agentId ?? '')}`;
  });
  const wish = { agentId: next.agentId, model: node.model, maxSteps: node.maxSteps, task: [task, next.part, ...omitted, ...heard].join('\n\n') };
  return { kind: 'run', wishes: [wish], progress: `${next.name}, ${said.length + 1} of ${speakers.length}` };
}

/** Where what the next one hears begins: of much that was said, the last. */
function firstHeard(said: readonly (Said | undefined)[], sees: Plan['sees']): number {
  if (sees === 'last') return Math.max(0, said.length - 1);
  let characters = 0;
  const tooMuch = said.findLastIndex((one) => (characters += one?.text.length ?? 0) > maxHeard);
  return Math.min(tooMuch + 1, Math.max(0, said.length - 1));
}

const first = (said: readonly Said[]) => said[0];

function transcriptOf(speakers: readonly Speaker[], said: readonly (Said | undefined)[]): string {
  return said.flatMap((one, index) => (one === undefined || one.text === '' ? [] : [`### ${speakers[index]?.name ?? ''}\n${one.text}`])).join('\n\n');
}

type ConfigOf<T extends RunWork['type']> = Extract<RunWork, { type: T }>['config'];

function vote({ task, node, own }: DriverInput, config: ConfigOf<'vote'>, [said]: Done): Step {
  const { voters, prompt_suffix: suffix, verdict_format: format, min_voters: least = voters.length } = config;
  if (said === undefined) {
    const more = [suffix, format === undefined ? undefined : `Give your verdict in this form: ${format}`];
    const parts = [task, ...more.map((text) => (text === undefined ? undefined : own(text)))];
    const wish = { model: node.model, maxSteps: node.maxSteps, task: parts.filter((part) => part !== undefined).join('\n\n') };
    return { kind: 'run', wishes: voters.map((agentId) => ({ agentId, ...wish })), progress: `${voters.length} voters answer` };
  }
  const answered = said.filter(({ ok }) => ok).length;
  if (answered < least)
    return { kind: 'fail', error: `${answered} of ${voters.length} voters answered, ${least} are needed: ${errorsOf(voters, said)}` };
  return { kind: 'complete', output: verdicts(voters, said) };
}

function mapReduce({ task, fence, own, node }: DriverInput, config: ConfigOf<'map-reduce'>, [mapped, reduced]: Done): Step {
  const { mappers, reducer, reducer_prompt: prompt } = config;
  const common = { model: node.model, maxSteps: node.maxSteps };
  const names = mappers.map(({ agent }) => agent);
  if (mapped === undefined)
    return {
      kind: 'run',
      wishes: mappers.map(({ agent, task_suffix: suffix }) => ({
        ...common,
        agentId: agent,
        task: suffix === undefined ? task : `${task}\n\nYour part of it: ${own(suffix)}`,
      })),
      progress: `${mappers.length} mappers work`,
    };
  if (mapped.some(({ ok }) => !ok)) return { kind: 'fail', error: `mappers failed: ${errorsOf(names, mapped)}` };
  if (reduced === undefined) {
    const parts = mapped.map(({ text }, index) => `Part ${index + 1}:\n${fence(text, names[index] ?? '')}`);
    const ask = prompt !== undefined ? own(prompt) : 'Others did the parts below. Make one result of them.';
    return {
      kind: 'run',
      wishes: [{ ...common, agentId: reducer, task: [task, ask, ...parts].join('\n\n') }],
      progress: `${reducer} puts the parts together`,
    };
  }
  const result = reduced[0];
  return result?.ok === true ? { kind: 'complete', output: result.text } : { kind: 'fail', error: `${reducer}: ${result?.error ?? 'failed'}` };
}

function verdicts(names: readonly string[], said: readonly Said[]): string {
  return said.flatMap(({ ok, text }, index) => (ok || text !== '' ? [`### ${names[index] ?? ''}\n${text}`] : [])).join('\n\n');
}

function errorsOf(names: readonly string[], said: readonly Said[]): string {
  return said.flatMap(({ ok, error }, index) => (ok ? [] : [`${names[index] ?? ''}: ${error ?? 'failed'}`])).join('; ');
}
