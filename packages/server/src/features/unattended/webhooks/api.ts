import type { WebhooksConfig } from './config.ts';
import type { Headers } from './intake/signature.ts';

/** A request for a webhook route, as far as it is known before its body. */
export interface WebhookCall {
  /** Behind `webhooks.path`, as sent. */
  readonly path: string;
  /** All values of each header, names in lower case. */
  readonly headers: Headers;
  /** The query as sent, without its `?`. */
  readonly search: string;
  readonly remoteAddress: string;
  readonly traceId: string;
}

/** A request that may send its body. */
export interface WebhookIntake {
  /** The path is that of the strict route, whose payload has a fixed shape. */
  readonly isStrict: boolean;
  /** Largest body, in bytes. */
  readonly bodyLimit: number;
  /** It takes one of few places, whoever sends it: it must come quickly. */
  readonly isLarge: boolean;
  /**
   * Has the body read and resolves when the delivery is stored, or was before. Fails with `unauthenticated`, `parse_error`, `invalid_params` (the
   * strict shape), `not_found` (no mapping wants the payload) and `unavailable`.
   */
  receive(read: () => Promise<Buffer>): Promise<{ readonly mapping: string; readonly isSigned: boolean }>;
}

export interface WebhooksApi {
  /** Where the routes begin. */
  readonly path: string;
  /** Deliveries of one address, signed or not; those without a valid signature also count against the common limit. */
  readonly rateLimit: WebhooksConfig['rateLimit'];
  /** Looks at everything but the body. Fails with `not_found` when no mapping wants the path, and with `unauthenticated` when no signature can hold. */
  open(call: WebhookCall): WebhookIntake;
}
