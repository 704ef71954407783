import { contract, type CronDeliveryTarget, type CronRun, type ResultInput, type TurnOrigin, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallingTurn } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { holdsTaint } from '../../../../runtime/fence.ts';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../../delegation/autonomy/api.ts';
import type { FinishDeps } from '../occurrences/finish.ts';
import { type Add, Args, ModelArgs, type Update } from './args.ts';
import { fenceWritten } from './written.ts';
import type { CronMethods } from '../methods.ts';
import { nextRun } from '../schedule/schedule.ts';

const parameters = once(() => z.toJSONSchema(ModelArgs(), { io: 'input' }));

export interface CronToolDeps {
  readonly methods: CronMethods;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly autonomy: Pick<AutonomyApi, 'admit'>;
  readonly tenantId: string;
  readonly defaultTimezone: string;
  readonly fence: FinishDeps['fence'];
}

const reads: ReadonlySet<Args['action']> = new Set(['list', 'status', 'runs']);
/** Origins of turns started by the operator's own users; the jobs they add run with the permissions of such a turn. */
const attended: ReadonlySet<TurnOrigin> = new Set(['rpc', 'api', 'channel']);
const shownText = 200;
const iso = (ms: number) => new Date(ms).toISOString();

/** `cron`: an agent manages its own jobs for its user. Added jobs run with the agent's whole policy, so only a turn that has it may add. */
export function createCronTool(deps: CronToolDeps): Tool<ReturnType<typeof Args>> {
  const { methods, clock } = deps;

  function admit(action: Args['action'], { call, agentId }: ToolContext): void {
    if (reads.has(action)) return;
    const refusal = refusalOf(action, call.agentCaller?.turn);
    if (refusal !== undefined) throw new AppError('denied', refusal);
    deps.autonomy.admit('orch:cron', deps.agents.usable(agentId, call), call);
  }

  async function add({ action: _, tell: recipient, ...given }: z.output<ReturnType<typeof Add>>, context: ToolContext): Promise<ToolResult> {
    if (recipient !== undefined && given.payload.kind !== 'agent_turn')
      throw new AppError('invalid_params', 'tell: belongs to a payload of kind agent_turn; a delivery goes to the inbox', { param: 'tell' });
    const delivery = recipient !== undefined && recipient !== 'nobody' && deliveryTo(recipient, context, deps.tenantId);
    const added = await methods['cron.add'](
      { ...(context.tainted() ? fenceWritten(given, given.name, deps.fence) : given), ...delivery },
      context.call,
    );
    const nextMs = nextRun(added.schedule, clock.now());
    return { content: `Job ${added.jobId} was added. Next run: ${nextMs === null ? 'none' : iso(nextMs)}` };
  }

  async function update({ action: _, jobName: meant, ...changes }: z.output<ReturnType<typeof Update>>, context: ToolContext): Promise<ToolResult> {
    const { jobName: now } = await methods['cron.update'](
      { ...meaning(meant), ...(context.tainted() ? fenceWritten(changes, meant, deps.fence) : changes) },
      context.call,
    );
    return { content: `Job ${JSON.stringify(now)} was changed.` };
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
      'Your scheduled jobs, one-time or recurring: each sends you a message as a separate turn, or a text to your user. Only turns started by a person may add, change and run jobs.',
    get args() {
      return Args();
    },
    get parameters() {
      return parameters();
    },
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
          return { content: `It is running now; check its runs later. ${'executionId' in begun ? begun.executionId : ''}` };
        }
        case 'remove': {
          const { jobName: gone } = await methods['cron.remove'](meaning(args.jobName), call);
          return { content: `Job ${JSON.stringify(gone)} was removed.` };
        }
      }
    },
  };
}

/** Returns where the answers of a job go: with `conversation` to the chat that the turn belongs to, and into its history. */
function deliveryTo(
  recipient: 'inbox' | 'conversation',
  { agentId, principalId, sessionKey, conversationRef, call }: ToolContext,
  tenantId: string,
): { readonly deliveryTarget: CronDeliveryTarget; readonly continuationMode?: 'origin_history' } {
  const chat = recipient === 'conversation' ? call.agentCaller?.turn?.endpoint : undefined;
  const conversation: CronDeliveryTarget['conversation'] = {
    conversationScope: { tenantId, agentId, partition: { kind: 'principal-key', principalId, sessionKey } },
    conversationRef,
  };
  if (chat !== undefined) {
    const { instance: channelInstanceId, threadId, channelType, conversationId, conversationKind } = chat;
    const destinationEndpoint = { channelType, channelInstanceId, conversationId, conversationKind, ...(threadId !== null && { threadId }) };
    return { deliveryTarget: { conversation, destinationEndpoint }, continuationMode: 'origin_history' };
  }
  const deliveryTarget: CronDeliveryTarget = {
    conversation,
    destinationEndpoint: {
      channelType: 'gateway',
      channelInstanceId: 'gateway',
      conversationId: recipient === 'inbox' ? 'inbox' : conversationRef,
      conversationKind: 'direct',
    },
  };
  return { deliveryTarget };
}

/** Returns why the turn may not, or undefined. A turn with fewer tools than its agent, or without a person, must not create one with more. */
function refusalOf(action: Args['action'], turn: CallingTurn | undefined): string | undefined {
  if (turn === undefined || turn.run !== undefined) return 'Sub-agents may only read jobs: list, status, runs';
  if (action === 'remove' && turn.origin === 'cron') return undefined;
  if (!attended.has(turn.origin))
    return `Only turns started by a person may do this with jobs; this one has the permissions of ${turn.origin}: list, status, runs${turn.origin === 'cron' ? ', remove' : ''}`;
  if (turn.toolBounds !== undefined) return 'A turn with restricted tools may only read jobs: list, status, runs';
  return undefined;
}

const isId = () => contract['cron.remove'].params.shape.jobId.unwrap();
const meaning = (nameOrId: string) => (isId().safeParse(nameOrId).success ? { jobId: nameOrId } : { jobName: nameOrId });

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
