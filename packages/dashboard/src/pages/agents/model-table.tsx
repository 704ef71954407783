import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Badge, Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Provider } from './agents-page.tsx';
import { ProviderBadge, type ProviderState, ProviderTrouble } from './provider-state.tsx';

/** The models of one provider with inputs and prices, the provider's state, and a check of its configuration. */
export function ModelTable({
  provider: { name, models },
  state,
  onChanged,
}: {
  readonly provider: Provider;
  readonly state: ProviderState | undefined;
  /** Called when the user has changed the state. */
  readonly onChanged: () => void;
}) {
  const { client } = useSession();
  const [outcome, setOutcome] = useState<Result<'models.test'>>();
  const { busy, error, run } = useAction();
  const check = (): void => run(async () => setOutcome(await client.call('models.test', { provider: name })));
  return (
    <section className="provider" aria-label={t('Provider {name}', { name })}>
      <header>
        <h3>{name}</h3>
        {state !== undefined && <ProviderBadge state={state} />}
        <span className="hint">{plural(models.length, 'model')}</span>
        <span className="grow" />
        <Button small disabled={busy} onClick={check} label={t('Check configuration of {name}', { name })}>
          {busy ? t('Checking…') : t('Check')}
        </Button>
      </header>
      {state !== undefined && <ProviderTrouble state={state} onChanged={onChanged} />}
      {error !== undefined && <Failure error={error} onRetry={check} />}
      {outcome !== undefined && <Outcome outcome={outcome} />}
      <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Models of {name}', { name })}>
        <table>
          <thead>
            <tr>
              <th>{t('Model')}</th>
              <th>{t('Input')}</th>
              <th data-align="right">{t('Context')}</th>
              <th data-align="right">{t('Output')}</th>
              <th data-align="right">{t('Input $/M')}</th>
              <th data-align="right">{t('Output $/M')}</th>
            </tr>
          </thead>
          <tbody>
            {models.map((model) => (
              <tr key={model.modelId}>
                <td>
                  <span className="mono">{model.modelId}</span> {model.reasoning && <Badge>{t('reasoning')}</Badge>}
                </td>
                <td>{model.input.join(', ')}</td>
                <td data-align="right">{count(model.contextWindow)}</td>
                <td data-align="right">{count(model.maxTokens)}</td>
                <td data-align="right">{model.cost === null ? t('unknown') : model.cost.input}</td>
                <td data-align="right">{model.cost === null ? t('unknown') : model.cost.output}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Outcome({ outcome }: { readonly outcome: Result<'models.test'> }) {
  const { status, source, message, hint, modelsAvailable, agentsUsing } = outcome;
  const summary = { available: t('Configured'), no_models: t('Configured, but without models'), not_configured: t('Not configured') }[status];
  const more = [
    source === undefined ? undefined : t('from {source}', { source: source.replaceAll('_', ' ') }),
    plural(modelsAvailable, 'model'),
    agentsUsing.length === 0
      ? t('not used by any agent')
      : t('used by {agentsUsing}', { agentsUsing: agentsUsing.map(({ agentId }) => agentId).join(', ') }),
    message,
    hint,
  ].filter((part) => part !== undefined);
  return (
    <Notice tone={status === 'available' ? 'good' : 'warn'}>
      <span>
        {tx('{name}: {more}. This check reads the catalog only; it does not contact the provider.', {
          name: <strong>{summary}</strong>,
          more: more.join('; '),
        })}
      </span>
    </Notice>
  );
}
