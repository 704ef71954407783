import { GrammyError } from 'grammy';
import { RequestFailed } from '../http.ts';
import type { Act, SendResult } from '../port.ts';

type Failed = Extract<Act<never>, { readonly is: 'failed' }>;

/** What a refusal is called, by its description; the verdict itself follows from the status alone. */
const kinds: readonly (readonly [RegExp, string])[] = [
  [/blocked by the user/i, 'blocked'],
  [/user is deactivated/i, 'deactivated'],
  [/can't initiate conversation|chat_write_forbidden.*bot/i, 'not_started'],
  [/was kicked|not a member/i, 'kicked'],
  [/thread not found|topic_?(?:closed|deleted|not_found)|topic is closed/i, 'no_such_thread'],
  [/chat not found|peer_id_invalid|group chat was deactivated/i, 'no_such_chat'],
  [/too long/i, 'too_long'],
  [/text is empty|message must be non-empty|text must be non-empty/i, 'no_text'],
  [/not enough rights|have no rights|need administrator|admin_required|write_forbidden/i, 'not_permitted'],
  [/voice_messages_forbidden/i, 'not_accepted'],
  [/entity too large|too big/i, 'too_large'],
];

/** Returns the kind of a refused message, for statistics and its owner. */
function kindOf({ error_code: code, description }: GrammyError): string {
  const known = kinds.find(([pattern]) => pattern.test(description));
  return known?.[1] ?? (code === 403 ? 'not_permitted' : code === 413 ? 'too_large' : 'refused');
}

/** The token, the method or the address is wrong, not the message. */
const isAccount = ({ error_code: code }: GrammyError): boolean => code === 401 || code === 404;

export const retryAfterMs = ({ error_code: code, parameters }: GrammyError): number | undefined =>
  code === 429 ? (parameters.retry_after ?? 1) * 1_000 : undefined;

/** Returns what became of a message whose call failed. */
export function sendResultOf(error: unknown): SendResult {
  if (error instanceof RequestFailed) return { is: error.maybeSent ? 'ambiguous' : 'notSent', text: error.message };
  if (!(error instanceof GrammyError)) return { is: 'ambiguous', text: 'The call failed' };
  const { error_code: code, description: text } = error;
  const waitMs = retryAfterMs(error);
  if (waitMs !== undefined) return { is: 'notSent', text, retryAfterMs: waitMs };
  if (isAccount(error)) return { is: 'notSent', text, scope: 'instance' };
  if (code >= 400 && code < 500) return { is: 'rejected', kind: kindOf(error), text };
  return { is: 'ambiguous', text };
}

/** Returns how any other call failed. `isRead`: it changes nothing, so a lost answer leaves nothing open. */
export function failureOf(error: unknown, isRead = false): Failed {
  if (!(error instanceof GrammyError)) {
    const open = !isRead && (!(error instanceof RequestFailed) || error.maybeSent);
    return { is: 'failed', kind: open ? 'ambiguous' : 'unavailable', text: error instanceof RequestFailed ? error.message : 'The call failed' };
  }
  const { error_code: code, description: text } = error;
  const waitMs = retryAfterMs(error);
  if (waitMs !== undefined) return { is: 'failed', kind: 'rate_limited', text, retryAfterMs: waitMs };
  if (isAccount(error)) return { is: 'failed', kind: 'unavailable', text };
  if (code < 400 || code >= 500) return { is: 'failed', kind: isRead ? 'unavailable' : 'ambiguous', text };
  if (/not found|message_id_invalid|participant_id_invalid|user_id_invalid|topic_deleted/i.test(text))
    return { is: 'failed', kind: 'not_found', text };
  if (code === 403 || kindOf(error) === 'not_permitted' || /can't be (?:edited|deleted)|can't (?:remove|restrict) (?:self|chat owner)/i.test(text))
    return { is: 'failed', kind: 'denied', text };
  return { is: 'failed', kind: 'invalid', text };
}

/** Whether the markup of a text was refused: the text itself may be sent. */
export const isMarkupRefusal = (error: unknown): boolean =>
  error instanceof GrammyError && error.error_code === 400 && /can't parse (?:entities|caption)/i.test(error.description);

/** Whether a file was refused as what it was sent as: it may be sent as a document. */
export const isMediaRefusal = (error: unknown): boolean =>
  error instanceof GrammyError &&
  error.error_code === 400 &&
  /photo_|image_process_failed|wrong type of the web page|wrong file type/i.test(error.description);

export const isUnchanged = (error: unknown): boolean =>
  error instanceof GrammyError && error.error_code === 400 && /message is not modified/i.test(error.description);

export const isWithoutText = (error: unknown): boolean =>
  error instanceof GrammyError && error.error_code === 400 && /there is no text in the message to edit/i.test(error.description);

/** Returns the id that a group has since it became a supergroup. */
export const migratedTo = (error: unknown): number | undefined =>
  error instanceof GrammyError && error.error_code === 400 ? error.parameters.migrate_to_chat_id : undefined;
