import { t } from './language.ts';
import { startTransition, useCallback, useEffect, useRef, useState } from 'react';
import { type Connection, connect } from './data/connect.ts';
import { type Session, SessionContext } from './data/context.ts';
import { isAuthenticationError, isConnectionError, isRateLimited } from './data/errors.ts';
import { closeSession, createSession } from './data/session.ts';
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
  const current = useRef<Session>(undefined);
  /** Counts login attempts: the newest one wins, however long an older one takes. */
  const attempts = useRef(0);

  const endSession = useCallback(() => {
    const session = current.current;
    current.current = undefined;
    if (session !== undefined) closeSession(session);
  }, []);

  const leave = useCallback(
    (error?: unknown) => {
      endSession();
      clearTab();
      document.title = t('Gatehouse');
      setState(error === undefined ? { step: 'out' } : { step: 'out', error });
    },
    [endSession],
  );

  const enter = useCallback(
    (connection: Connection) => {
      const session = createSession(connection, leave);
      current.current = session;
      // Drawn in slices: all of the frame and the page at once would hold a slow phone.
      startTransition(() => setState({ step: 'in', session }));
    },
    [leave],
  );

  const tryToken = useCallback(
    function tryNow(token: string) {
      endSession();
      attempts.current += 1;
      const attempt = attempts.current;
      connect(token).then(
        (connection) => {
          if (attempt !== attempts.current) return;
          keepToken(token);
          enter(connection);
        },
        (error: unknown) => {
          if (attempt !== attempts.current) return;
          // The gateway may come back, and the token is still valid then.
          if (isAuthenticationError(error)) clearTab();
          setState({ step: 'out', error, ...(isConnectionError(error) && { retry: token }) });
          // The request limit frees on its own: a tab that was loaded too often continues without a click.
          if (isRateLimited(error)) setTimeout(() => void (attempt === attempts.current && tryNow(token)), error.retryAfterMs);
        },
      );
    },
    [endSession, enter],
  );

  useEffect(() => {
    if (initialToken !== undefined) tryToken(initialToken);
    // A second login link opened in the same tab only changes the fragment.
    const onHash = (): void => {
      if (location.hash === '') return;
      const token = takeToken();
      if (token === undefined) return;
      setState({ step: 'trying', silent: true });
      tryToken(token);
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
