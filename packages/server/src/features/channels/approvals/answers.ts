import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import { RateLimiter } from '../../../kernel/limiter.ts';
import type { Answers, ChatGate, ChatSpeaker } from './api.ts';
import { codeOf, gateName } from './codes.ts';
import { type ChatRequest, readChatRequests, readGates } from './store.ts';

export interface AnswersDeps extends Pick<Core, 'db' | 'bus' | 'clock'> {
  readonly key: Buffer;
  /** Decides like `admin.approval.resolve`; false when it was decided before. */
  readonly decide: (decision: { readonly id: string; readonly approved: boolean; readonly by: string }, call: CallContext) => Promise<boolean>;
  /** `graph.answer` */
  readonly answerGate: (
    answer: { readonly graphId: string; readonly nodeId: string; readonly answer: string },
    call: CallContext,
  ) => Promise<unknown>;
}

/** Owners decide about everything in their chats. Everybody else's text is from outside: a call that it led to is not approved by its author. */
const mayDecide = ({ trust }: ChatSpeaker): boolean => trust === 'owner';

const refusal = 'No approval that you may decide about has this code.';
/** Codes that somebody may try in vain. */
const tries = { limit: 10, windowMs: 60 * 60_000 };

/** Answers of people in chats to requests for approvals. */
export function createAnswers(deps: AnswersDeps): Answers {
  const { db, clock, key, decide } = deps;
  const wrong = new RateLimiter({ ...tries, clock });

  const inChat = async ({ to }: ChatSpeaker): Promise<ChatRequest[]> =>
    (await db.read(readChatRequests, undefined)).filter(
      ({ to: { instance, channelType, conversationId, threadId, conversationKind }, isForOwner }) =>
        instance === to.instance &&
        channelType === to.channelType &&
        conversationId === to.conversationId &&
        // A reply to a question to an owner may begin a thread.
        (isForOwner || threadId === to.threadId) &&
        conversationKind === to.conversationKind,
    );

  /** Returns the gates of graphs that the speaker may answer in the chat. */
  const gatesFor = async ({ to, trust, target }: ChatSpeaker): Promise<ChatGate[]> => {
    if (trust === 'guest' || (to.conversationKind === 'shared' && trust !== 'owner')) return [];
    const { instance, conversationId } = to;
    return (await db.read(readGates, { instance, conversationId })).filter((gate) => trust === 'owner' || gate.principalId === target.principalId);
  };

  /** Answers for the owner of the graph, who announces it in this chat. */
  async function answerGate(work: ChatSpeaker, gate: ChatGate, approved: boolean, call: CallContext): Promise<string> {
    const { graphId, nodeId, agentId, principalId } = gate;
    const by = byOf(work);
    const metadata = { nodeId, approved, by };
    await recordAudit(deps, call, { actionType: 'channels.answer', classification: 'security', target: graphId, metadata });
    const identity = { principalId, tokenId: principalId, scopes: [], agents: [agentId] };
    try {
      await deps.answerGate({ graphId, nodeId, answer: approved ? 'approved' : 'denied' }, { ...call, identity });
      return approved ? 'Approved.' : 'Denied.';
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return error.message;
    }
  }

  return {
    async answer(work, { code, approved }, call) {
      const sender = `${work.to.instance} ${work.senderId}`;
      if (!wrong.peek(sender).allowed) return refusal;
      const request = (await inChat(work)).find(({ id }) => codeOf(key, id) === code.toUpperCase());
      const gate = request === undefined ? (await gatesFor(work)).find((one) => codeOf(key, gateName(one)) === code.toUpperCase()) : undefined;
      if (gate !== undefined) return answerGate(work, gate, approved, call);
      if (request === undefined || !mayDecide(work)) {
        wrong.take(sender);
        return refusal;
      }
      const by = byOf(work);
      const isOpen = request.state === 'pending' && request.expiresAtMs > clock.ageNow();
      if (isOpen && (await decide({ id: request.id, approved, by }, forAgent(call, request.agentId)))) return undefined;
      const now = (await inChat(work)).find(({ id }) => id === request.id);
      // The command is carried out again after a crash.
      if (now?.decidedBy === by && now.state === (approved ? 'approved' : 'denied')) return undefined;
      if (now === undefined || now.state === 'expired' || now.state === 'pending') return 'That approval has expired: it was not done.';
      return `That was already ${now.state} by ${now.decidedBy ?? 'somebody'}.`;
    },
    async waiting(work) {
      if (!mayDecide(work)) return [];
      const pending = (await inChat(work)).filter(({ state, expiresAtMs }) => state === 'pending' && expiresAtMs > clock.ageNow());
      return pending.map(({ id, action, expiresAtMs }) => ({ code: codeOf(key, id), action, untilMs: expiresAtMs }));
    },
  };
}

/** The work may be of another agent than that of the chat. */
const forAgent = (call: CallContext, agentId: string): CallContext => ({ ...call, identity: { ...call.identity, agents: [agentId] } });

/** Returns the name of a decider for the audit and for others. */
const byOf = ({ to, senderId }: ChatSpeaker): string => `channel:${to.instance}:${senderId}`;
