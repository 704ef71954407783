import { ApiChatRequest } from '@gatehouse/contract';
import type { TurnRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { readJsonBody } from '../body.ts';
import type { HttpCall } from '../http-call.ts';
import { parseInput } from '../parse-input.ts';

/** Reads the strict body of `POST /api/chat` and `POST /api/chat/stream` as a turn (http-gateway.md §2.9). */
export async function readChatRequest(call: HttpCall, bodyLimit: number): Promise<TurnRequest> {
  const { message, agentId, sessionKey, conversationRef, model, effort, locale, attachments } = parseInput(
    ApiChatRequest(),
    await readJsonBody(call, bodyLimit),
  );
  return {
    message,
    origin: 'api',
    address: { agentId, sessionKey, conversationRef },
    ...(model !== undefined && { model }),
    ...(effort !== undefined && { effort }),
    ...(locale !== undefined && { locale: canonicalLocale(locale) }),
    ...(attachments !== undefined && { attachments: attachments.map(({ mediaId }) => mediaId) }),
  };
}

/** Returns the canonical form of a BCP-47 tag; `invalid_params` for anything else, such as `en_US`. */
function canonicalLocale(tag: string): string {
  try {
    const [canonical] = Intl.getCanonicalLocales(tag);
    if (canonical !== undefined) return canonical;
  } catch {
    // Reported below, with this project's message.
  }
  throw new AppError('invalid_params', 'locale: expected a BCP-47 language tag, such as "en-US"', { param: 'locale' });
}

/** Returns the `Idempotency-Key` of a request, undefined when it has none. */
export function idempotencyKeyOf(call: HttpCall): string | undefined {
  const key = call.incoming.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new AppError('invalid_params', 'Idempotency-Key: expected one value of 1 to 255 visible ASCII characters', { param: 'Idempotency-Key' });
}

/** Returns the number in `Last-Event-ID`, undefined without the header. */
export function lastEventIdOf(call: HttpCall): number | undefined {
  const id = call.incoming.headers['last-event-id'];
  if (id === undefined) return undefined;
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw new AppError('invalid_params', 'Last-Event-ID: expected the id of a token event, a whole number', { param: 'Last-Event-ID' });
}
