import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Answers } from '../approvals/api.ts';
import type { Destination } from '../delivery/api.ts';
import type { MessageWork } from './run-message.ts';
import { countUnanswered } from './store.ts';

export interface CommandDeps {
  readonly db: Db;
  readonly clock: Clock;
  /** Removes what the model sees of a conversation; its messages stay. */
  readonly reset: (conversationRef: string, call: CallContext) => Promise<unknown>;
  /** Ends the turns of a conversation, and the messages queued behind them; returns how many. */
  readonly stop: (conversationRef: string, call: CallContext) => Promise<{ readonly turns: number; readonly messages: number }>;
  readonly answers: Answers;
  readonly agents: { find(agentId: string): { readonly suspended: boolean; readonly config: { readonly model?: string | undefined } } | undefined };
  /** Agents that may answer in a conversation. */
  readonly agentsIn: (to: Destination) => readonly string[];
}

const names = ['new', 'stop', 'status', 'agent', 'help'] as const;

export type Command =
  | { readonly name: Exclude<(typeof names)[number], 'agent'> }
  /** Without `to` it asks who answers. */
  | { readonly name: 'agent'; readonly to?: string }
  | { readonly name: 'approve' | 'deny'; readonly code: string };

const help = [
  '/new begins a new conversation after what runs',
  '/stop ends what runs and waits here',
  '/status says what runs and waits, and with which model',
  '/agent says who answers, /agent NAME lets another agent answer here',
  '/approve CODE and /deny CODE decide about what an agent asked',
  '/help shows this. Everything else goes to the agent.',
].join(', ');

const decision = /^\/(approve|deny)\s+([a-hj-np-z2-9]{8})$/i;
/** Must be as it is shown: other words have eight letters too. */
const decisionWithoutSlash = /^([Aa]pprove|[Dd]eny)\s+([A-HJ-NP-Z2-9]{8})$/;

const choice = /^\/agent\s+([a-z0-9][a-z0-9_-]{0,63})$/i;

/** Returns the command that a text is. A decision needs no slash, which some clients take for their own command. */
export function commandIn(text: string): Command | undefined {
  const said = text.trim();
  const [, verb, code] = decision.exec(said) ?? decisionWithoutSlash.exec(said) ?? [];
  if (verb !== undefined && code !== undefined) return { name: verb.toLowerCase() === 'approve' ? 'approve' : 'deny', code };
  const to = choice.exec(said)?.[1];
  if (to !== undefined) return { name: 'agent', to: to.toLowerCase() };
  const name = names.find((one) => said.toLowerCase() === `/${one}`);
  return name && { name };
}

/** Whether a text is a command that is carried out while a turn runs; a new conversation begins after it. */
export function isUrgent(text: string): boolean {
  const command = commandIn(text);
  return command !== undefined && command.name !== 'new';
}

/** Carries out a command, also a second time after a crash; returns the reply, undefined for none. In a group only owners command. */
export async function runCommand(command: Command, work: MessageWork, call: CallContext, deps: CommandDeps): Promise<string | undefined> {
  const { target, to, trust } = work;
  if (to.conversationKind === 'shared' && trust !== 'owner') return 'Only the owners of this channel may do that here.';
  switch (command.name) {
    case 'new':
      await deps.reset(target.ref, call);
      return 'This is a new conversation.';
    case 'stop':
      return stoppedText(await deps.stop(target.ref, call));
    case 'status':
      return statusOf(work, deps);
    case 'agent':
      return command.to === undefined ? agentOf(work, deps) : chosenText(command.to, work, deps);
    case 'help':
      return help;
    case 'approve':
    case 'deny':
      return deps.answers.answer(work, { code: command.code, approved: command.name === 'approve' }, call);
  }
}

const agentOf = ({ target }: MessageWork, { agents }: CommandDeps): string =>
  `Agent ${target.agentId}, model ${agents.find(target.agentId)?.config.model ?? 'as configured for all agents'}.`;

/** Returns the reply to a choice, which the intake of the message has made or refused: the work is of the agent that answers then. */
function chosenText(to: string, { target, to: chat, trust }: MessageWork, { agents, agentsIn }: CommandDeps): string {
  if (target.agentId.toLowerCase() === to) return `Agent ${target.agentId} answers here now.`;
  if (trust === 'guest') return 'Only people whom the operator approved may do that.';
  const offered = agentsIn(chat).filter((id) => agents.find(id) !== undefined);
  const meant = offered.find((id) => id.toLowerCase() === to);
  if (meant !== undefined && agents.find(meant)?.suspended === true) return `Agent ${meant} is suspended. Agent ${target.agentId} answers here.`;
  return `No agent "${to}" answers here: expected ${offered.join(' or ')}. Agent ${target.agentId} answers here.`;
}

async function statusOf(work: MessageWork, deps: CommandDeps): Promise<string> {
  const unanswered = await deps.db.read(countUnanswered, { conversationRef: work.target.ref });
  const waiting = await deps.answers.waiting(work);
  return [
    agentOf(work, deps),
    unanswered === 0 ? 'Nothing runs or waits.' : `${counted(unanswered, 'message')} without an answer yet.`,
    ...waiting.map(({ code, action, untilMs }) => `Waits for /approve ${code} or /deny ${code} until ${timeOf(untilMs)}: ${action}`),
  ].join('\n');
}

function stoppedText({ turns, messages }: { readonly turns: number; readonly messages: number }): string {
  const ended = [...(turns === 0 ? [] : [counted(turns, 'turn')]), ...(messages === 0 ? [] : [counted(messages, 'waiting message')])];
  return ended.length === 0 ? 'Nothing runs here.' : `Stopped: ${ended.join(' and ')}.`;
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
const timeOf = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
