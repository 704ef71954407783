import type { Client } from '@gatehouse/client';
import { saveJson } from '../../ui/save-json.ts';

/** Downloads a whole conversation as JSON. */
export function exportConversation(
  client: Client,
  { conversationRef }: { readonly conversationRef: string },
  onError: (error: unknown) => void,
): void {
  onError(undefined);
  client.call('session.export', { conversationRef }).then((whole) => saveJson(`conversation-${conversationRef.slice(3, 15)}.json`, whole), onError);
}
