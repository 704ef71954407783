import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Badge, Button } from '../../ui/parts.tsx';

/** Shows whether new sub-agents are accepted, with a button to pause or resume them. */
export function GateButton({ onDone, onError }: { readonly onDone: (text: string) => void; readonly onError: (error: unknown) => void }) {
  const { client } = useSession();
  const { busy, run } = useAction();
  const gate = useLoad(['subagent.status'], (signal) => client.call('subagent.status', {}, { signal }));
  const { data, reload } = gate;
  if (data === undefined) return null;
  const change = async (): Promise<void> => {
    onError(undefined);
    try {
      const { paused } = await client.call(data.paused ? 'subagent.resume' : 'subagent.pause');
      onDone(paused ? t('New sub-agents are rejected until you resume them or the gateway restarts.') : t('New sub-agents are accepted.'));
    } catch (failure) {
      onError(failure);
    }
    reload();
  };
  return (
    <>
      {!data.acceptingSpawns && <Badge tone="warn">{t('stopping')}</Badge>}
      {data.paused && <Badge tone="warn">{t('paused')}</Badge>}
      <Button icon={data.paused ? 'play' : 'pause'} disabled={busy} onClick={() => run(change)}>
        {data.paused ? t('Resume new sub-agents') : t('Pause new sub-agents')}
      </Button>
    </>
  );
}
