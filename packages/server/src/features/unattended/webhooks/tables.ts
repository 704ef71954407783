import type { DeliveryRow } from './store.ts';

/** Rows of `webhook_delivery`. */
interface WebhookDeliveryTable {
  readonly id: string;
  readonly mappingId: string;
  readonly action: DeliveryRow['action'];
  readonly ownState: DeliveryRow['ownState'];
  readonly liveKey: string | null;
  readonly senderId: string | null;
  readonly bodyDigest: string;
  readonly bodyBytes: number;
  readonly agentId: string;
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  readonly message: string;
  readonly remoteAddress: string | null;
  readonly traceId: string;
  readonly replayOf: string | null;
  readonly repeats: number;
  readonly receivedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly webhookDelivery: WebhookDeliveryTable;
  }
}
