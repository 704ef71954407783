import { AppError } from '../../../kernel/app-error.ts';
import type { Core } from '../../../kernel/core.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { ApprovalChat, NewRequest } from '../../access/approvals/api.ts';
import type { DeliveryApi, OutgoingMessage, PartRow } from '../delivery/api.ts';
import type { ApprovalChats } from './api.ts';
import { buttonsOf, codeOf, gateName } from './codes.ts';
import { chatIn, confirmationKeyOf, type EndedQuestion, type OwnerChat, ownerQuestionKeyOf, questionKeyOf, readUnconfirmed } from './store.ts';

export interface ApprovalChatsDeps extends Core {
  readonly delivery: Pick<DeliveryApi, 'partsOf' | 'wake'>;
  /** Key of the codes. */
  readonly key: Buffer;
  /** `confirmApproval` */
  readonly confirm: Operation<{ readonly questionKey: string; readonly parts: readonly PartRow[] }, boolean>;
  /** Whether a direct conversation is one of an owner of its channel. */
  readonly isOfOwner: (to: ApprovalChat) => Promise<boolean>;
  /** Returns the direct conversation of an owner of the channel of a chat. */
  readonly findOwner: (to: ApprovalChat) => Promise<OwnerChat | undefined>;
}

/** Longer arguments are cut: chats have small messages. */
const maxParams = 600;

/** Asks in the chat that a request came from, and confirms there how it ended. Both are stored, and sent once under their keys. */
export function createApprovalChats({ db, log, delivery, key, confirm, isOfOwner, findOwner }: ApprovalChatsDeps): ApprovalChats {
  let isConfirming = false;
  let isAskedAgain = false;

  /** Whether nobody in a chat may decide, so that nothing about the call is shown: a direct conversation of somebody who is not an owner. */
  const isQuiet = async (to: ApprovalChat): Promise<boolean> => to.conversationKind === 'direct' && !(await isOfOwner(to));

  async function confirmAll(): Promise<void> {
    for (const request of await db.read(readUnconfirmed, undefined)) {
      const { questionKey, to, agentId, conversationRef, principalId } = request;
      const parts = delivery.partsOf({
        opKey: confirmationKeyOf(questionKey),
        to,
        text: confirmationOf(request, (await isQuiet(to)) ? undefined : codeOf(key, request.id)),
        // Somebody who decided in a chat waits for it.
        unsolicited: request.decidedBy?.startsWith('channel:') === true ? undefined : 'report',
        agentId,
        conversationRef,
        principalId,
        turnId: null,
      });
      if (await db.write(confirm, { questionKey, parts })) delivery.wake(to.instance);
    }
  }

  /** One pass at a time; what ends during one is found by the next. */
  async function confirmEnded(): Promise<void> {
    isAskedAgain = true;
    if (isConfirming) return;
    isConfirming = true;
    try {
      while (isAskedAgain) {
        isAskedAgain = false;
        await confirmAll();
      }
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'unavailable')) log.error({ err: error }, 'Failed to confirm an approval in its chat');
    } finally {
      isConfirming = false;
    }
  }

  return {
    async ask(request) {
      if (request.chatJson === null) return undefined;
      const to = chatIn({ chatJson: request.chatJson });
      const code = codeOf(key, request.id);
      if (!(await isQuiet(to))) return delivery.partsOf(questionOf(request, to, code));
      const owner = await findOwner(to);
      return [
        ...delivery.partsOf(questionOf(request, to, undefined)),
        ...(owner === undefined ? [] : delivery.partsOf(questionToOwner(request, to, owner, code))),
      ];
    },
    buttonsOf,
    gateCode: (gate) => codeOf(key, gateName(gate)),
    wake: ([first]) => first !== undefined && delivery.wake(first.instance),
    confirm: () => void confirmEnded(),
  };
}

/** Without a code, nobody there may decide. */
function questionOf(request: NewRequest, to: ApprovalChat, code: string | undefined): OutgoingMessage {
  const { id, agentId, conversationRef, timeoutMs } = request;
  const principalId = principalIn(request);
  // The author of the message waits for its answer.
  const unsolicited = request.origin === 'channel' ? undefined : 'question';
  const about: Omit<OutgoingMessage, 'text'> = {
    opKey: questionKeyOf(id),
    to,
    lifeMs: timeoutMs,
    unsolicited,
    agentId,
    conversationRef,
    principalId,
    turnId: null,
  };
  if (code === undefined) return { ...about, text: `This waits until ${untilOf(request)} for an approval of the operator.` };
  const wanted = `an approval${to.conversationKind === 'shared' ? ' of an owner' : ''}`;
  return { ...about, text: textOf(request, wanted, code), buttons: buttonsOf(code) };
}

/** Belongs to no conversation: that of the request is of somebody else, who must not see the call. */
function questionToOwner(request: NewRequest, from: ApprovalChat, { to, principalId }: OwnerChat, code: string): OutgoingMessage {
  const { id, agentId, timeoutMs } = request;
  return {
    opKey: ownerQuestionKeyOf(id),
    to,
    text: textOf(request, 'an approval for somebody else', code, [`Chat: ${from.conversationId}`]),
    buttons: buttonsOf(code),
    lifeMs: timeoutMs,
    unsolicited: 'question',
    agentId,
    conversationRef: null,
    principalId,
    turnId: null,
  };
}

function textOf(request: NewRequest, wanted: string, code: string, about: readonly string[] = []): string {
  const { agentId, action, tool, paramsJson, reason } = request;
  const what = [...about, `What: ${action}`, `Tool: ${tool}`, `Arguments: ${paramsText(paramsJson)}`, `Reason: ${reason}`].join('\n');
  return [
    `Agent ${agentId} waits for ${wanted}, with the code ${code}:`,
    verbatim(what),
    `Without a decision by ${untilOf(request)} the call is denied, and the work continues without it.`,
  ].join('\n');
}

const untilOf = ({ expiresAtMs }: NewRequest): string => `${new Date(expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

function paramsText(json: string): string {
  if (json.length <= maxParams) return json;
  const shown = headOf(json, maxParams);
  return `${shown} … (${json.length - shown.length} more characters: read them on the page Approvals before you decide)`;
}

/** Returns a block of code, in which no platform renders anything: what people decide about must look as it is. */
function verbatim(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function confirmationOf({ state, decidedBy }: EndedQuestion, code: string | undefined): string {
  const [by, which] = code === undefined ? ['', 'The approval'] : [` by ${decidedBy ?? 'somebody'}`, `The approval ${code}`];
  if (state === 'approved') return `${which} was given${by}.`;
  if (state === 'expired') return `${which} has expired: nobody decided in time, and the call was not made.`;
  // Decided by the system: its work was stopped.
  return decidedBy?.startsWith('system:') === true ? `${which} is not needed any more.` : `${which} was denied${by}.`;
}

/** Returns the principal of the suspended turn, written only by approvals. */
const principalIn = ({ turnJson }: Pick<NewRequest, 'turnJson'>): string =>
  turnJson === null ? '' : (parseJson(turnJson) as { readonly principalId: string }).principalId;
