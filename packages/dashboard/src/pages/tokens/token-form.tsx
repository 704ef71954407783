import { t } from '../../language.ts';
import type { TokenScope } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { MadeToken } from './secret-dialog.tsx';

const scopes: readonly { readonly scope: TokenScope; readonly text: string }[] = [
  { scope: 'rpc', text: t('Chat, own conversations and the API') },
  { scope: 'api', text: t('Only the routes under /v1') },
  { scope: 'ws', text: t('Open a WebSocket') },
  { scope: 'mcp-client', text: t('Only the MCP endpoint') },
  { scope: 'admin', text: t('Administer agents, tokens and all conversations') },
  { scope: '*', text: t('Everything, including future scopes') },
];
const dayMs = 86_400_000;
const lifetimes: readonly { readonly days: number; readonly text: string }[] = [
  { days: 1, text: t('in a day') },
  { days: 7, text: t('in a week') },
  { days: 30, text: t('in 30 days') },
  { days: 90, text: t('in 90 days') },
  { days: 365, text: t('in a year') },
  { days: 0, text: t('never') },
];

export function TokenForm({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (made: MadeToken) => void }) {
  const { client, agents: known } = useSession();
  const agents = useStore(known);
  const [id, setId] = useState('');
  const [chosen, setChosen] = useState<ReadonlySet<TokenScope>>(new Set<TokenScope>(['rpc']));
  const [only, setOnly] = useState<ReadonlySet<string>>(new Set());
  const [days, setDays] = useState(90);
  const { busy, error, run } = useAction();

  const make = async (): Promise<void> =>
    onMade(
      await client.call('tokens.create', {
        scopes: [...chosen],
        ...(id.trim() !== '' && { id: id.trim() }),
        ...(only.size > 0 && { agents: [...only] }),
        ...(days > 0 && { expiresAt: Date.now() + days * dayMs }),
      }),
    );

  return (
    <Dialog title={t('New token')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(make);
        }}
      >
        <div className="dialog-body">
          <Field label={t('Id')} hint={t('The client that uses it, for example ci or laptop. Leave empty for a random id.')}>
            {(field, hint) => (
              <input
                id={field}
                aria-describedby={hint}
                pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,63}"
                value={id}
                onChange={(event) => setId(event.target.value)}
              />
            )}
          </Field>
          <fieldset>
            <legend>{t('Scopes')}</legend>
            {scopes.map(({ scope, text }) => (
              <label key={scope} className="check">
                <input type="checkbox" checked={chosen.has(scope)} onChange={() => setChosen(toggled(chosen, scope))} />
                <span className="mono">{scope}</span> <span className="hint">{text}</span>
              </label>
            ))}
          </fieldset>
          {agents.length > 1 && (
            <fieldset className="long-choice">
              <legend>{t('Allowed agents (none selected: all)')}</legend>
              {agents.map((agentId) => (
                <label key={agentId} className="check">
                  <input type="checkbox" checked={only.has(agentId)} onChange={() => setOnly(toggled(only, agentId))} />
                  <span className="mono">{agentId}</span>
                </label>
              ))}
            </fieldset>
          )}
          <Field label={t('Expires')}>
            {(field) => (
              <select id={field} value={days} onChange={(event) => setDays(Number(event.target.value))}>
                {lifetimes.map((one) => (
                  <option key={one.days} value={one.days}>
                    {one.text}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          {/* The server treats an empty list as all scopes, which is never what an empty selection means. */}
          <Button submit look="primary" disabled={busy || chosen.size === 0}>
            {busy ? t('Creating…') : t('Create')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function toggled<T>(set: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}
