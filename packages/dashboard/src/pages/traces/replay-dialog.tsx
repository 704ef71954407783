import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, money } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useModelNames } from '../../data/model-names.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import { timeText } from './labels.ts';

type Replay = Result<'obs.trace.replay'>;

/** Asks the question of a turn again, of another model, and shows both turns side by side. */
export function ReplayDialog({ turnId, onClose }: { readonly turnId: string; readonly onClose: () => void }) {
  const { client } = useSession();
  const models = useModelNames();
  const [model, setModel] = useState('');
  const [replay, setReplay] = useState<Replay>();
  const { busy, error, run } = useAction();
  const start = (): void => run(async () => setReplay(await client.call('obs.trace.replay', { ref: turnId, model })));
  return (
    <Dialog title={t('Replay on another model')} onClose={onClose} wide={replay !== undefined}>
      <div className="dialog-body">
        <Field label={t('Model')} hint={t('It answers in a fork of the conversation. Tools that change or reach something are refused.')}>
          {(id, hint) => (
            <>
              <input id={id} aria-describedby={hint} list={`${id}-models`} value={model} onChange={(event) => setModel(event.target.value.trim())} />
              <datalist id={`${id}-models`}>
                {models.map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        {replay !== undefined && <Comparison replay={replay} />}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Close')}</Button>
        <Button look="primary" disabled={busy || model === ''} onClick={start}>
          {busy ? t('Waiting for the answer…') : t('Replay')}
        </Button>
      </footer>
    </Dialog>
  );
}

function Comparison({ replay }: { readonly replay: Replay }) {
  const turns = [
    { name: t('Original'), ...replay.original },
    { name: t('Replay'), ...replay },
  ];
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Original and replay')}>
      <table>
        <thead>
          <tr>
            {[t('Turn'), t('Model'), t('Ended with'), t('Duration'), t('Tokens'), t('Cost'), t('Trace')].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {turns.map((turn) => (
            <tr key={turn.name}>
              <td>{turn.name}</td>
              <td className="mono">{turn.model ?? '–'}</td>
              <td>{turn.finishReason ?? '–'}</td>
              <td>{turn.latencyMs === null ? '–' : timeText(turn.latencyMs)}</td>
              <td>{count(turn.tokensUsed.total)}</td>
              <td>{turn.costUsd === null ? t('not known') : money(turn.costUsd)}</td>
              <td>
                <TraceLink reference={turn.turnId} label={t('Trace of the {name}', { name: turn.name.toLowerCase() })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
