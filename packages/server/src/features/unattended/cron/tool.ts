import { contract, type CronDeliveryTarget, type CronRun, type ResultInput, type TurnOrigin } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallingTurn } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { holdsTaint } from '../../../runtime/fence.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../../delegation/autonomy/api.ts';
import type { FinishDeps } from './occurrences/finish.ts';
import type { CronMethods } from './methods.ts';
import { nextRun } from './schedule/schedule.ts';

export interface CronToolDeps {
  readonly methods: CronMethods;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly autonomy: Pick<AutonomyApi, 'admit'>;
  readonly tenantId: string;
  readonly defaultTimezone: string;
  readonly fence: FinishDeps['fence'];
}

const { name, schedule, payload, sessionPolicy, toolPolicy } = contract['cron.add'].params.shape;
const { shape: updateShape } = contract['cron.update'].params;
const jobName = contract['cron.runs'].params.shape.jobName.unwrap();
const limit = z.int().min(1).max(100).default(20);

const Add = z.strictObject({
  action: z.literal('add'),
  name,
  schedule,
  payload,
  sessionPolicy,
  toolPolicy,
  tell: z.enum(['nobody', 'inbox', 'conversation']).optional(),
});
const Update = z.strictObject({
  action: z.literal('update'),
  jobName,
  name: updateShape.name,
  schedule: updateShape.schedule,
  payload: updateShape.payload,
  sessionPolicy: updateShape.sessionPolicy,
  toolPolicy: updateShape.toolPolicy,
  paused: updateShape.paused,
});
const Args = z.discriminatedUnion('action', [
  Add,
  Update,
  z.strictObject({ action: z.literal('list'), limit }),
  z.strictObject({ action: z.literal('remove'), jobName }),
  z.strictObject({ action: z.literal('status') }),
  z.strictObject({ action: z.literal('runs'), jobName, limit }),
  z.strictObject({ action: z.literal('run'), jobName }),
]);
type Args = z.output<typeof Args>;

/** What the model is told: vendors take no union as the outermost shape. */
const Told = z.strictObject({
  action: z
    .enum(['add', 'list', 'update', 'remove', 'status', 'runs', 'run'])
    .describe('status: the time of this moment and the state of the schedule. runs: what became of the runs of a job. run: one run now.'),
  jobName: z.string().optional().describe('update, remove, runs, run: name or id of the job.'),
  name: z.string().optional().describe('add: of the new job; update: another name.'),
  schedule: schedule.optional().describe('add, update.'),
  payload: payload
    .optional()
    .describe('add, update. agent_turn: you are sent the message; delivery: the text goes into the inbox of your person as it is, without a model.'),
  sessionPolicy,
  toolPolicy: toolPolicy.describe('Tools that the turns of the job have, within yours.'),
  tell: Add.shape.tell.describe('add, of an agent_turn: who is told its answer; nobody when absent.'),
  paused: updateShape.paused.describe('update.'),
  limit: limit.optional().describe('list, runs.'),
});

const reads: ReadonlySet<Args['action']> = new Set(['list', 'status', 'runs']);
/** Turns that begin with somebody who is the operator's own: what they add runs with the rights of such a turn. */
const attended: ReadonlySet<TurnOrigin> = new Set(['rpc', 'api', 'channel']);
const shownText = 200;
const iso = (ms: number) => new Date(ms).toISOString();

/** `cron`: an agent sees and changes its own jobs for whoever it works for. What it adds runs with its own policy, so that only a turn that has all of it may add. */
export function createCronTool(deps: CronToolDeps): Tool<typeof Args> {
  const { methods, clock } = deps;

  function admit(action: Args['action'], { call, agentId }: ToolContext): void {
    if (reads.has(action)) return;
    const refusal = refusalOf(action, call.agentCaller?.turn);
    if (refusal !== undefined) throw new AppError('denied', refusal);
    deps.autonomy.admit('orch:cron', deps.agents.usable(agentId, call), call);
  }

  /** What an agent writes that has read text from outside is no order to the turns of the job. */
  function written<T extends { readonly name?: string | undefined; readonly payload?: z.output<typeof payload> | undefined }>(
    given: T,
    about: string,
    { tainted }: ToolContext,
  ): T {
    if (!tainted()) return given;
    if (given.name !== undefined && !/^[\p{L}\p{N} _.-]{1,64}$/u.test(given.name))
      throw new AppError('invalid_params', 'name: after text from outside, expected at most 64 letters, digits, spaces and ". _ -"');
    if (given.payload?.kind === 'heartbeat_event') {
      const text = deps.fence(given.payload.text, { source: 'cron', job: about });
      const fenced = payload.safeParse({ ...given.payload, text });
      if (!fenced.success) throw new AppError('invalid_params', 'payload.text: too long');
      return { ...given, payload: fenced.data };
    }
    if (given.payload?.kind !== 'agent_turn') return given;
    const message = `A job that you made is due. You had read text from outside when you wrote what it is to do:\n\n${deps.fence(given.payload.message, { source: 'cron', job: about })}`;
    const fenced = payload.safeParse({ ...given.payload, message });
    if (!fenced.success) throw new AppError('invalid_params', 'payload.message: too long');
    return { ...given, payload: fenced.data };
  }

  function targetOf(tell: 'inbox' | 'conversation', { agentId, principalId, sessionKey, conversationRef }: ToolContext): CronDeliveryTarget {
    return {
      conversation: {
        conversationScope: { tenantId: deps.tenantId, agentId, partition: { kind: 'principal-key', principalId, sessionKey } },
        conversationRef,
      },
      destinationEndpoint: {
        channelType: 'gateway',
        channelInstanceId: 'gateway',
        conversationId: tell === 'inbox' ? 'inbox' : conversationRef,
        conversationKind: 'direct',
      },
    };
  }

  async function add({ action: _, tell, ...given }: z.output<typeof Add>, context: ToolContext): Promise<ToolResult> {
    if (tell !== undefined && given.payload.kind !== 'agent_turn')
      throw new AppError('invalid_params', 'tell: belongs to a payload of kind agent_turn; a delivery goes into the inbox', { param: 'tell' });
    const told = tell !== undefined && tell !== 'nobody' && { deliveryTarget: targetOf(tell, context) };
    const added = await methods['cron.add']({ ...written(given, given.name, context), ...told }, context.call);
    const nextMs = nextRun(added.schedule, clock.now());
    return { content: `Job ${added.jobId} is added. Next run: ${nextMs === null ? 'none' : iso(nextMs)}` };
  }

  async function update({ action: _, jobName: meant, ...changes }: z.output<typeof Update>, context: ToolContext): Promise<ToolResult> {
    const { jobName: now } = await methods['cron.update']({ ...meaning(meant), ...written(changes, meant, context) }, context.call);
    return { content: `Job ${JSON.stringify(now)} is changed.` };
  }

  async function list(most: number, { agentId, call }: ToolContext): Promise<ToolResult> {
    const { jobs, total } = await methods['cron.list']({ agentId, offset: 0, limit: most }, call);
    const content = [`${total} jobs`, ...jobs.map(lineOf)].join('\n');
    return { content, ...(jobs.some(isFenced) && { outside: { source: 'jobs' } }) };
  }

  async function status({ agentId, call }: ToolContext): Promise<ToolResult> {
    const { state, running, jobCount, activeClaimCount } = await methods['cron.status']({ agentId }, call);
    return {
      content: JSON.stringify({
        now: iso(clock.now()),
        defaultTimezone: deps.defaultTimezone,
        state,
        running,
        jobs: jobCount,
        runsAtTheMoment: activeClaimCount,
      }),
    };
  }

  return {
    name: 'cron',
    description:
      'Jobs of yours that run by the clock, once or again and again: you are sent a message as a turn of its own, or your person a text. Only turns that a person began add, change and run jobs.',
    args: Args,
    parameters: z.toJSONSchema(Told, { io: 'input' }),
    risk: 'write',
    effect: 'once',
    timeoutMs: 30_000,
    onlyReads: ({ action }) => reads.has(action),
    describe: (args) =>
      `jobs: ${args.action}${'name' in args ? ` ${JSON.stringify(args.name)}` : 'jobName' in args ? ` ${JSON.stringify(args.jobName)}` : ''}`,
    async run(args, context) {
      admit(args.action, context);
      const { call } = context;
      switch (args.action) {
        case 'add':
          return add(args, context);
        case 'update':
          return update(args, context);
        case 'list':
          return list(args.limit, context);
        case 'status':
          return status(context);
        case 'runs': {
          const { runs } = await methods['cron.runs']({ jobName: args.jobName, limit: args.limit, agentId: context.agentId }, call);
          return { content: runs.length === 0 ? 'It has not run yet.' : runs.map(runLine).join('\n') };
        }
        case 'run': {
          const begun = await methods['cron.run']({ jobName: args.jobName, mode: 'force', agentId: context.agentId }, call);
          return { content: `It runs now; look at its runs later. ${'executionId' in begun ? begun.executionId : ''}` };
        }
        case 'remove': {
          const { jobName: gone } = await methods['cron.remove'](meaning(args.jobName), call);
          return { content: `Job ${JSON.stringify(gone)} is removed.` };
        }
      }
    },
  };
}

/** Undefined: the turn may. A turn with fewer tools than its agent, or without a person, must not make one that has more. */
function refusalOf(action: Args['action'], turn: CallingTurn | undefined): string | undefined {
  if (turn === undefined || turn.run !== undefined) return 'Sub-agents only look at jobs: list, status, runs';
  if (action === 'remove' && turn.origin === 'cron') return undefined;
  if (!attended.has(turn.origin))
    return `Only turns that a person began do this with jobs; this one has the rights of ${turn.origin}: list, status, runs${turn.origin === 'cron' ? ', remove' : ''}`;
  if (turn.toolBounds !== undefined) return 'A turn whose tools are bounded only looks at jobs: list, status, runs';
  return undefined;
}

const isId = contract['cron.remove'].params.shape.jobId.unwrap();
const meaning = (nameOrId: string) => (isId.safeParse(nameOrId).success ? { jobId: nameOrId } : { jobName: nameOrId });

type Listed = ResultInput<'cron.list'>['jobs'][number];
const textOf = ({ payload: what }: Listed): string => (what.kind === 'agent_turn' ? what.message : '');
const isFenced = (job: Listed) => holdsTaint(textOf(job));

function lineOf(job: Listed): string {
  const { lifecycle } = job;
  const next = 'nextRunAtMs' in lifecycle && lifecycle.nextRunAtMs !== null ? `, next ${iso(lifecycle.nextRunAtMs)}` : '';
  const text = textOf(job);
  const shown = text === '' ? '' : `: ${JSON.stringify(text.slice(0, shownText).toWellFormed())}`;
  return `${job.id} ${JSON.stringify(job.name)} ${lifecycle.state}${next}, ${JSON.stringify(job.schedule)}, ${job.payload.kind}${shown}`;
}

function runLine({ executionId, trigger, scheduledForMs, status, errorKind, reason }: CronRun): string {
  const why = [errorKind, reason].filter((part) => part !== undefined).join(': ');
  return `${iso(scheduledForMs)} ${status}, ${trigger}, ${executionId}${why === '' ? '' : `, ${why}`}`;
}
