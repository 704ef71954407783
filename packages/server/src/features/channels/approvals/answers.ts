import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { RateLimiter } from '../../../kernel/limiter.ts';
import type { Answers, ChatSpeaker } from './api.ts';
import { chatIn, principalIn } from './chats.ts';
import { codeOf } from './codes.ts';
import { type ChatRequest, readChatRequests } from './store.ts';

export interface AnswersDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly key: Buffer;
  /** Decides like `admin.approval.resolve`; false when it was decided before. */
  readonly decide: (decision: { readonly id: string; readonly approved: boolean; readonly by: string }, call: CallContext) => Promise<boolean>;
}

const refusal = 'There is no approval with this code that you may decide about.';
/** Codes that somebody may try in vain. */
const tries = { limit: 10, windowMs: 60 * 60_000 };

/** Answers of people in chats to requests for approvals. */
export function createAnswers({ db, clock, key, decide }: AnswersDeps): Answers {
  const wrong = new RateLimiter({ ...tries, clock });

  const inChat = async ({ to }: ChatSpeaker): Promise<ChatRequest[]> =>
    (await db.read(readChatRequests, undefined)).filter((request) => {
      const { instance, channelType, conversationId, threadId, conversationKind } = chatIn(request);
      return (
        instance === to.instance &&
        channelType === to.channelType &&
        conversationId === to.conversationId &&
        threadId === to.threadId &&
        conversationKind === to.conversationKind
      );
    });

  return {
    async answer(work, { code, approved }, call) {
      const sender = `${work.to.instance} ${work.senderId}`;
      if (!wrong.peek(sender).allowed) return refusal;
      const request = (await inChat(work)).find(({ id }) => codeOf(key, id) === code.toUpperCase());
      if (request === undefined || !mayDecide(work, request)) {
        wrong.take(sender);
        return refusal;
      }
      const by = `channel:${work.to.instance}:${work.senderId}`;
      const isOpen = request.state === 'pending' && request.expiresAtMs > clock.ageNow();
      if (isOpen && (await decide({ id: request.id, approved, by }, forAgent(call, request.agentId)))) return undefined;
      const now = (await inChat(work)).find(({ id }) => id === request.id);
      // The command is carried out again after a crash.
      if (now?.decidedBy === by && now.state === (approved ? 'approved' : 'denied')) return undefined;
      if (now === undefined || now.state === 'expired' || now.state === 'pending') return 'That approval has expired: it was not done.';
      return `That was already ${now.state} by ${now.decidedBy ?? 'somebody'}.`;
    },
    async waiting(work) {
      const pending = (await inChat(work)).filter(({ state, expiresAtMs }) => state === 'pending' && expiresAtMs > clock.ageNow());
      return pending
        .filter((request) => mayDecide(work, request))
        .map(({ id, action, expiresAtMs }) => ({ code: codeOf(key, id), action, untilMs: expiresAtMs }));
    },
  };
}

/** Owners decide about everything in their chats; approved people about their own work, in their direct conversation. */
function mayDecide({ trust, to, target }: ChatSpeaker, request: ChatRequest): boolean {
  if (trust === 'owner') return true;
  if (trust === 'guest' || to.conversationKind === 'shared' || chatIn(request).ownersOnly) return false;
  return principalIn(request) === target.principalId;
}

/** The work may be of another agent than that of the chat. */
const forAgent = (call: CallContext, agentId: string): CallContext => ({ ...call, identity: { ...call.identity, agents: [agentId] } });
