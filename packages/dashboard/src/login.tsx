import { t, tx } from './language.ts';
import { useState } from 'react';
import { isAuthenticationError } from './data/errors.ts';
import { canBeToken, tokenOfText } from './data/token.ts';
import { BrandMark } from './ui/icon.tsx';
import { Button, Failure, Field } from './ui/parts.tsx';

/** Asks for a token. The error for a wrong one says where to find the right one. */
export function Login({
  busy,
  error,
  onRetry,
  onToken,
}: {
  readonly busy: boolean;
  readonly error: unknown;
  /** Present when the token of the tab may still be valid. */
  readonly onRetry: (() => void) | undefined;
  readonly onToken: (token: string) => void;
}) {
  const [token, setToken] = useState('');
  const [mistyped, setMistyped] = useState(false);
  const shown = mistyped
    ? new Error('This is not a token: it is too long or contains invalid characters. Paste only the token, or the link that the gateway printed.')
    : error !== undefined && isAuthenticationError(error)
      ? new Error('Unknown token. It may be mistyped, expired or revoked.')
      : error;
  return (
    <main className="login">
      <form
        className="login-card"
        onSubmit={(event) => {
          event.preventDefault();
          const given = tokenOfText(token);
          setMistyped(!canBeToken(given));
          if (canBeToken(given)) onToken(given);
        }}
      >
        <div className="brand">
          <BrandMark />
          <h1>{t('Gatehouse')}</h1>
        </div>
        <p className="lead">{t('Log in with an access token of this gateway.')}</p>
        {shown !== undefined && <Failure error={shown} onRetry={mistyped ? undefined : onRetry} />}
        <Field label={t('Access token')} hint={t('Stored in this tab only, until you log out or close it.')}>
          {(id, hintId) => (
            <input
              id={id}
              aria-describedby={hintId}
              type="password"
              autoComplete="off"
              spellCheck={false}
              autoFocus
              required
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        <Button submit look="primary" disabled={busy || token.trim() === ''}>
          {busy ? t('Checking…') : t('Log in')}
        </Button>
        <details>
          <summary>{t('Where is my token?')}</summary>
          <p>
            {tx('On its first start the gateway prints a link that logs you in. The same token is in the file {code} in its home folder:', {
              code: <code>token</code>,
            })}
          </p>
          <pre tabIndex={0} aria-label={t('Command')}>
            <code>cat ~/.gatehouse/token</code>
          </pre>
        </details>
      </form>
    </main>
  );
}
