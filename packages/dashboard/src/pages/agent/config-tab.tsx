import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLeaveGuard } from '../../router.ts';
import { Button, Failure, Field, Notice } from '../../ui/parts.tsx';
import type { Agent } from './agent-page.tsx';
import { ChangeList } from '../../ui/change-list.tsx';
import { type ConfigChange, configChanges, configPatch, isFields } from '../../data/config-changes.ts';

interface Checked {
  /** The checked text: only this one can be applied. */
  readonly text: string;
  readonly patch: Record<string, unknown>;
  readonly changes: readonly ConfigChange[];
}

/** Edits the whole configuration as JSON: the server checks it and reports what would change, then it is applied. */
export function ConfigTab({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const { client } = useSession();
  const { agentId, config } = agent;
  const stored = JSON.stringify(config, null, 2);
  const [text, setText] = useState(stored);
  const [checked, setChecked] = useState<Checked>();
  const { busy, error, run, clearError } = useAction();
  const [outcome, setOutcome] = useState<string>();
  const unsaved = text !== stored;
  useLeaveGuard(unsaved, t('The changed configuration was not applied. Leave anyway?'));

  const start = (work: () => Promise<void>): void => {
    setOutcome(undefined);
    run(() =>
      work().catch((failure: unknown) => {
        setChecked(undefined);
        throw failure;
      }),
    );
  };
  const check = async (): Promise<void> => {
    const wanted: unknown = JSON.parse(text);
    if (!isFields(wanted)) throw new Error('Expected a JSON object.');
    const patch = configPatch(config, wanted);
    const { config: merged } = await client.call('agents.update', { agentId, config: patch, dryRun: true });
    setChecked({ text, patch, changes: configChanges(config, merged) });
  };
  const apply = async ({ patch }: Checked): Promise<void> => {
    const { config: applied } = await client.call('agents.update', { agentId, config: patch });
    setText(JSON.stringify(applied, null, 2));
    setChecked(undefined);
    setOutcome(t('Applied. Takes effect with the next turn.'));
    onChanged();
  };
  const current = checked?.text === text ? checked : undefined;

  return (
    <form
      className="panel"
      aria-label={t('Configuration')}
      onSubmit={(event) => {
        event.preventDefault();
        start(check);
      }}
    >
      <p className="hint">{t('Changes are written to config.yaml; its comments and its history stay. Removed keys return to their defaults.')}</p>
      <Field label={t('Configuration as JSON')}>
        {(id) => (
          <textarea
            id={id}
            className="editor"
            rows={24}
            spellCheck={false}
            autoCapitalize="off"
            autoCorrect="off"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setOutcome(undefined);
            }}
          />
        )}
      </Field>
      {error !== undefined && <Failure error={error} title={t('Invalid configuration.')} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {current !== undefined && <ChangeList changes={current.changes} />}
      <div className="actions">
        <Button submit disabled={busy || !unsaved}>
          {busy ? t('Working…') : t('Check')}
        </Button>
        <Button
          look="primary"
          disabled={busy || current === undefined || current.changes.length === 0}
          onClick={() => current !== undefined && start(() => apply(current))}
        >
          {t('Apply')}
        </Button>
        {unsaved && (
          <Button
            look="quiet"
            onClick={() => {
              setText(stored);
              clearError();
            }}
          >
            {t('Discard changes')}
          </Button>
        )}
      </div>
    </form>
  );
}
