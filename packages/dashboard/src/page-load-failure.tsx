import { t } from './language.ts';
import { useEffect, useEffectEvent, useState } from 'react';
import { useSession } from './data/context.ts';
import { Button, Notice, Page } from './ui/parts.tsx';

const checkMs = 3_000;
/** Minimum time between reloads: reloading again at once would not help. */
const reloadedAgainMs = 30_000;
const reloadedAtKey = 'gatehouse.reloaded-at';

/**
 * Replaces a page whose code could not be fetched. Reloads the tab as soon as the gateway responds, which after an update
 * loads the new build; the token is kept. Reloading earlier would show the browser's own error page.
 */
export function PageLoadFailure() {
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
    <Page title={t('This page could not be loaded')}>
      <Notice tone="bad">
        {state === 'missing'
          ? t(
              "The gateway responds, but it doesn't have the code of this page. Its installation may be incomplete: build and restart it, then reload.",
            )
          : t('The gateway does not respond, and this page was not loaded in this tab before. The tab reloads once the gateway responds again.')}
      </Notice>
      <div className="actions">
        <Button look="primary" onClick={reload}>
          {t('Reload')}
        </Button>
      </div>
    </Page>
  );
}

function reload(): void {
  sessionStorage.setItem(reloadedAtKey, String(Date.now()));
  location.reload();
}
