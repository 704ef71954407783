import { createContext, use } from 'react';
import type { ChatStore } from './chats.ts';
import type { Connection } from './connect.ts';
import type { LiveEvents } from './live.ts';
import type { TitleStore } from './titles.ts';

/** What all pages share while somebody is logged in. */
export interface Session extends Connection {
  readonly live: LiveEvents;
  readonly chats: ChatStore;
  readonly titles: TitleStore;
  readonly logOut: () => void;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === undefined) throw new Error('Pages are shown inside a session only.');
  return session;
}
