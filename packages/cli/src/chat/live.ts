import { AuthenticationError, type Client, type ServerEvent } from '@gatehouse/client';
import type { EventKind } from '@gatehouse/contract';

const kinds = [
  'message:received',
  'message:thinking',
  'tool:started',
  'tool:output',
  'tool:finished',
  'approval:requested',
  'approval:resolved',
] as const satisfies readonly EventKind[];

export type LiveEvent = Extract<ServerEvent, { readonly kind: (typeof kinds)[number] }>;

/** Identifies a conversation; its reference is learned when it is stored. */
export interface Watched {
  readonly agentId: string;
  readonly sessionKey: string;
  ref: string | undefined;
  /** The message that is being sent: the first event about it has the reference of a new conversation. */
  sending: string | undefined;
}

export interface LiveHandlers {
  /** The conversations that are open now. */
  readonly watched: () => readonly Watched[];
  readonly onEvent: (event: LiveEvent, about: Watched) => void;
  /** Called when the first events can arrive, or never will. */
  readonly onReady?: () => void;
  /** The connection was lost, or is there again. */
  readonly onConnection: (state: 'lost' | 'back') => void;
}

/** Follows what happens in the open conversations until the signal is aborted; reconnects automatically. */
export async function followConversations(
  client: Client,
  { watched, onEvent, onReady, onConnection }: LiveHandlers,
  signal: AbortSignal,
): Promise<void> {
  let isLost = false;
  try {
    const events = client.events({
      kinds,
      signal,
      initialDelayMs: 250,
      maxDelayMs: 3_000,
      onState(state) {
        if (state === 'open') onReady?.();
        if (state === 'waiting' && !isLost) onConnection('lost');
        if (state === 'open' && isLost) onConnection('back');
        if (state !== 'connecting') isLost = state === 'waiting';
      },
    });
    for await (const event of events) {
      if (!isOne(event)) continue;
      const about = watched().find((one) => isAbout(event.payload, one, event.kind));
      if (about !== undefined) onEvent(event, about);
    }
  } catch (error) {
    // Without events the chat still answers. A refused token is reported by the next message.
    if (signal.aborted || error instanceof AuthenticationError) return;
    onConnection('lost');
  } finally {
    onReady?.();
  }
}

function isOne(event: { readonly kind: string }): event is LiveEvent {
  return kinds.some((kind) => kind === event.kind);
}

/** Compares by reference: other users have conversations with the same key. */
function isAbout(payload: LiveEvent['payload'], watched: Watched, kind: EventKind): boolean {
  if (watched.ref !== undefined) return payload.conversationRef === watched.ref;
  if (kind !== 'message:received' || !('message' in payload)) return false;
  const { agentId, sessionKey, message, conversationRef } = payload;
  if (agentId !== watched.agentId || sessionKey !== watched.sessionKey || message.text !== watched.sending) return false;
  watched.ref = conversationRef;
  return true;
}
