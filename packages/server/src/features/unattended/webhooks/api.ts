import type { WebhooksConfig } from './config.ts';
import type { Headers } from './intake/signature.ts';

/** A request for a webhook route, without its body. */
export interface WebhookCall {
  /** Path after `webhooks.path`, as sent. */
  readonly path: string;
  /** All values of each header, with lower-case names. */
  readonly headers: Headers;
  /** The query as sent, without its `?`. */
  readonly search: string;
  readonly remoteAddress: string;
  readonly traceId: string;
}

/** A request that may send its body. */
export interface WebhookIntake {
  /** Whether the path is the strict route, whose payload has a fixed shape. */
  readonly isStrict: boolean;
  /** Largest body, in bytes. */
  readonly bodyLimit: number;
  /** Whether the body uses one of the few slots for large bodies and must arrive quickly. */
  readonly isLarge: boolean;
  /**
   * Reads the body and resolves when the delivery is stored or already was. Throws `unauthenticated`, `parse_error`, `invalid_params` (the
   * strict shape), `not_found` (no mapping matches the payload) or `unavailable`.
   */
  receive(read: () => Promise<Buffer>): Promise<{ readonly mapping: string; readonly isSigned: boolean }>;
}

export interface WebhooksApi {
  /** Path prefix of the routes. */
  readonly path: string;
  /** Rate limit per address for all deliveries; those without a valid signature also count against the common limit. */
  readonly rateLimit: () => WebhooksConfig['rateLimit'];
  /** Checks everything except the body. Throws `not_found` when no mapping matches the path, `unauthenticated` when no signature can be valid. */
  open(call: WebhookCall): WebhookIntake;
}
