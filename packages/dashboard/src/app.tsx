import { useCallback, useEffect, useState } from 'react';
import { createChatStore } from './data/chats.ts';
import { type Connection, connect } from './data/connect.ts';
import { type Session, SessionContext } from './data/context.ts';
import { isAuthenticationError, isConnectionError } from './data/errors.ts';
import { openLive } from './data/live.ts';
import { createTitles } from './data/titles.ts';
import { clearTab, keepToken, takeToken } from './data/token.ts';
import { Login } from './login.tsx';
import { Shell } from './shell.tsx';
import { Skeleton } from './ui/parts.tsx';

type State =
  | { readonly step: 'out'; readonly error?: unknown; readonly retry?: string }
  | { readonly step: 'trying'; readonly silent: boolean }
  | { readonly step: 'in'; readonly session: Session };

/** Logged out, trying a token, or logged in. */
export function App({ initialToken }: { readonly initialToken: string | undefined }) {
  const [state, setState] = useState<State>(initialToken === undefined ? { step: 'out' } : { step: 'trying', silent: true });

  const leave = useCallback((error?: unknown) => {
    setState((before) => {
      if (before.step === 'in') {
        before.session.live.close();
        before.session.chats.close();
      }
      return error === undefined ? { step: 'out' } : { step: 'out', error };
    });
    clearTab();
  }, []);

  const enter = useCallback(
    (connection: Connection) => {
      // A token that is revoked ends its stream, and with it the session of this tab.
      const live = openLive(connection.client, (error) => {
        if (isAuthenticationError(error)) leave(error);
      });
      const session: Session = {
        ...connection,
        live,
        chats: createChatStore(connection.client, connection.defaultAgentId),
        titles: createTitles(connection.client),
        logOut: () => leave(),
      };
      setState({ step: 'in', session });
    },
    [leave],
  );

  const tryToken = useCallback(
    (token: string) => {
      connect(token).then(
        (connection) => {
          keepToken(token);
          enter(connection);
        },
        (error: unknown) => {
          // A gateway that is not there may come back, and the token is then as good as before.
          if (isAuthenticationError(error)) clearTab();
          setState({ step: 'out', error, ...(isConnectionError(error) && { retry: token }) });
        },
      );
    },
    [enter],
  );

  useEffect(() => {
    if (initialToken !== undefined) tryToken(initialToken);
    // A second link that is opened in the same tab changes the fragment only.
    const onHash = (): void => {
      if (location.hash === '') return;
      const token = takeToken();
      if (token !== undefined) tryToken(token);
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, [initialToken, tryToken]);

  if (state.step === 'in')
    return (
      <SessionContext value={state.session}>
        <Shell />
      </SessionContext>
    );
  if (state.step === 'trying' && state.silent)
    return (
      <main className="login">
        <Skeleton lines={3} />
      </main>
    );
  const begin = (token: string): void => {
    setState({ step: 'trying', silent: false });
    tryToken(token);
  };
  const { error, retry } = state.step === 'out' ? state : {};
  return <Login busy={state.step === 'trying'} error={error} onRetry={retry === undefined ? undefined : () => begin(retry)} onToken={begin} />;
}
