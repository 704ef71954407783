import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Elapsed } from '../../ui/elapsed.tsx';
import { Badge, Button } from '../../ui/parts.tsx';
import { TerminalDialog } from './terminal-dialog.tsx';

/** Lists commands, terminal sessions and tool calls that run in the background; empty while there are none. */
export function BackgroundList({ onDone, onError }: { readonly onDone: (text: string) => void; readonly onError: (error: unknown) => void }) {
  const { client } = useSession();
  const { busy, run } = useAction();
  const { data, reload } = useLoad(['background.list'], (signal) => client.call('background.list', {}, { signal }), {
    changedBy: ['tool:finished', 'background_task:', 'terminal.'],
    settleMs: 2_000,
  });
  const [watched, setWatched] = useState<{ readonly id: string; readonly description: string }>();
  // The last screen of a session stays until its window is closed.
  if (data === undefined || (data.total === 0 && watched === undefined)) return null;
  const stop = async (id: string, description: string): Promise<void> => {
    onError(undefined);
    await client.call('background.stop', { id }).then(() => onDone(t('Stopped {description}.', { description })), onError);
    reload();
  };
  return (
    <section aria-label={t('In the background')}>
      <h2>{t('In the background')}</h2>
      <ul className="rows">
        {data.items.map(({ id, agentId, kind, description, rootRunId, startedAt }) => (
          <li key={id} className="row">
            <div className="row-main">
              <span className="row-title mono">{description}</span>
              <p className="hint mono run-id">{rootRunId}</p>
            </div>
            <div className="row-facts">
              <span>{agentId}</span>
              <Elapsed fromMs={startedAt} toMs={undefined} />
              <Badge tone="neutral">{kind}</Badge>
            </div>
            <div className="actions">
              {kind === 'terminal' && (
                <Button small label={t('Watch {description}', { description })} onClick={() => setWatched({ id, description })}>
                  {t('Watch')}
                </Button>
              )}
              <Button small label={t('Stop {description}', { description })} disabled={busy} onClick={() => run(() => stop(id, description))}>
                {t('Stop')}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {watched !== undefined && (
        <TerminalDialog
          id={watched.id}
          title={t('Terminal: {description}', { description: watched.description })}
          onClose={() => {
            setWatched(undefined);
            // A session that its program ended is in no event.
            reload();
          }}
        />
      )}
    </section>
  );
}
