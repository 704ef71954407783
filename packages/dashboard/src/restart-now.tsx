import { t } from './language.ts';
import { useState } from 'react';
import { useSession } from './data/context.ts';
import { useAction } from './data/use-action.ts';
import { Button, Failure, Notice } from './ui/parts.tsx';

/** Restarts the gateway after its running turns have ended; the page connects again when it is back. */
export function RestartNow() {
  const { client } = useSession();
  const restart = useAction();
  const [answer, setAnswer] = useState<string>();
  const run = async () => {
    const { warning } = await client.call('gateway.restart');
    setAnswer(warning ?? t('The gateway restarts.'));
  };
  return (
    <>
      {restart.error !== undefined && <Failure error={restart.error} />}
      {answer === undefined ? (
        <Button disabled={restart.busy} onClick={() => restart.run(run)}>
          {restart.busy ? t('Working…') : t('Restart now')}
        </Button>
      ) : (
        <Notice>{answer}</Notice>
      )}
    </>
  );
}
