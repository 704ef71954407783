import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { Budget } from '../../data/first-run.ts';
import { useAction } from '../../data/use-action.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

/** A cap for all agents together: in dollars, or in tokens where the price of the model is not known. */
export function BudgetStep({
  budget,
  isPriced,
  onDone,
}: {
  readonly budget: Budget | undefined;
  readonly isPriced: boolean;
  readonly onDone: () => void;
}) {
  const { client } = useSession();
  const unit = isPriced ? 'usd' : 'tokens';
  const [amount, setAmount] = useState(() =>
    String(budget?.scope === 'all' && budget.window === 'day' && budget.unit === unit ? budget.amount : unit === 'usd' ? 5 : 2_000_000),
  );
  const saving = useAction();
  const save = async (): Promise<void> => {
    await client.call('config.set', { section: 'budgets', key: unit === 'usd' ? 'perDayUsd' : 'perDayTokens', value: Number(amount) });
    onDone();
  };
  return (
    <form
      className="start-form"
      onSubmit={(event) => {
        event.preventDefault();
        saving.run(save);
      }}
    >
      <Field
        label={unit === 'usd' ? t('US dollars in 24 hours') : t('Tokens in 24 hours')}
        hint={t('For all agents together. A call that could exceed it is not made.{unit}', {
          unit: unit === 'usd' ? '' : ` ${t('In tokens, because your model is free or its price is not known.')}`,
        })}
      >
        {(field, hint) => (
          <input
            id={field}
            aria-describedby={hint}
            className="start-amount"
            type="number"
            required
            min={unit === 'usd' ? 0.01 : 1}
            max={unit === 'usd' ? 1_000_000 : undefined}
            step={unit === 'usd' ? 0.01 : 1}
            value={amount}
            onChange={(event) => setAmount(event.target.value)}
          />
        )}
      </Field>
      {saving.error !== undefined && <Failure error={saving.error} />}
      <div className="start-actions">
        <Button submit look="primary" disabled={saving.busy}>
          {saving.busy ? t('Saving…') : t('Set the limit')}
        </Button>
        <PageLink to="/spend" className="button quiet">
          {t('See what is spent')}
        </PageLink>
      </div>
    </form>
  );
}
