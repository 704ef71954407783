import { useEffect, useEffectEvent, useState } from 'react';
import { useSession } from './data/context.ts';
import { Button, Notice, Page } from './ui/parts.tsx';

const checkMs = 3_000;
/** A tab that was reloaded a moment ago would not be helped by it again. */
const reloadedAgainMs = 30_000;
const reloadedAtKey = 'gatehouse.reloaded-at';

/**
 * In place of a page whose code could not be fetched. Reloads the tab as soon as the gateway answers, which after an update
 * brings the new build; the token is kept. Reloading earlier would leave the user with the browser's own error page.
 */
export function PartFailure() {
  const { client } = useSession();
  const [state, setState] = useState<'asking' | 'away' | 'missing'>('asking');
  const check = useEffectEvent(async (): Promise<void> => {
    const answers = await client.health({ timeoutMs: checkMs }).then(
      () => true,
      () => false,
    );
    if (!answers) setState('away');
    else if (Date.now() - Number(sessionStorage.getItem(reloadedAtKey)) > reloadedAgainMs) reload();
    else setState('missing');
  });
  useEffect(() => {
    const first = setTimeout(() => void check());
    const timer = setInterval(() => void check(), checkMs);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, []);
  return (
    <Page title="This page could not be loaded">
      <Notice tone="bad">
        {state === 'missing'
          ? 'The gateway answers, but it does not have the code of this page. Its installation may be incomplete: build and restart it, then reload.'
          : 'The gateway does not answer, and this page was not open in this tab before. The tab reloads once the gateway answers again.'}
      </Notice>
      <div className="actions">
        <Button look="primary" onClick={reload}>
          Reload
        </Button>
      </div>
    </Page>
  );
}

function reload(): void {
  sessionStorage.setItem(reloadedAtKey, String(Date.now()));
  location.reload();
}
