import { t, tx } from '../../language.ts';
import { type ReactNode, useCallback, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { useModelNames } from '../../data/model-names.ts';
import { type Config, type ConfigSchema, useConfig, useConfigSchema } from '../../data/use-config.ts';
import { mayLeave, useLeaveGuard } from '../../router.ts';
import { ChangeList } from '../../ui/change-list.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Failure, Skeleton } from '../../ui/parts.tsx';
import type { Change } from '../../ui/schema/changes.ts';
import { SettingFormContext } from '../../ui/schema/form.ts';
import { valueAt } from '../../ui/schema/paths.ts';
import { SaveBar } from '../../ui/schema/save-bar.tsx';
import { childSettings, entrySetting, type Setting } from '../../ui/schema/setting.ts';
import { SettingView } from '../../ui/schema/setting-view.tsx';
import { useCheck } from '../../ui/schema/use-check.ts';
import { useDraft } from '../../ui/schema/use-draft.ts';
import { placedErrors, previewAgent } from './agent-changes.ts';
import { groupAgentKeys } from './agent-groups.ts';
import type { Agent } from './agent-page.tsx';
import { AgentReview } from './agent-review.tsx';
import { ConfigTab } from './config-tab.tsx';

/** The configuration of an agent by subject, or as JSON. */
export function AgentEditor({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const config = useConfig();
  const schema = useConfigSchema();
  const [isJson, setJson] = useState(false);
  const agents = schema.data?.sections.find(({ id }) => id === 'agents');
  const toggle = (
    <Button small look="quiet" label={isJson ? t('Form: Configuration') : t('JSON: Configuration')} onClick={() => mayLeave() && setJson(!isJson)}>
      {isJson ? t('Form') : t('JSON')}
    </Button>
  );
  return (
    <>
      {config.error !== undefined && <Failure error={config.error} onRetry={config.reload} />}
      {schema.error !== undefined && <Failure error={schema.error} onRetry={schema.reload} />}
      {config.data === undefined || schema.data === undefined || agents === undefined ? (
        (config.loading || schema.loading) && <Skeleton lines={8} />
      ) : isJson ? (
        <>
          <div className="toolbar">
            <h2 className="grow">{t('Configuration as JSON')}</h2>
            {toggle}
          </div>
          <ConfigTab agent={agent} onChanged={onChanged} />
        </>
      ) : (
        <Editor
          agent={agent}
          config={config.data}
          schema={schema.data}
          agents={agents}
          toggle={toggle}
          onSaved={() => {
            config.reload();
            onChanged();
          }}
        />
      )}
    </>
  );
}

function Editor({
  agent,
  config,
  schema: { lookup },
  agents,
  toggle,
  onSaved,
}: {
  readonly agent: Agent;
  readonly config: Config;
  readonly schema: ConfigSchema;
  readonly agents: Setting;
  readonly toggle: ReactNode;
  readonly onSaved: () => void;
}) {
  const { client } = useSession();
  const { agentId } = agent;
  const entry = useMemo(() => entrySetting(agents, agentId, lookup), [agents, agentId, lookup]);
  const groups = useMemo(() => groupAgentKeys(childSettings(entry, lookup)), [entry, lookup]);
  const own = useMemo(() => ({ ...config, written: { agents: { [agentId]: valueAt(config.written, entry.path) ?? {} } } }), [config, agentId, entry]);
  const draft = useDraft(own, lookup, useModelNames());
  const ask = useCallback((changes: readonly Change[], signal: AbortSignal) => previewAgent(client, agent, changes, signal), [client, agent]);
  const check = useCheck(draft.changes, draft.digest, ask);
  const errors = useMemo(
    (): FieldErrors => new Map([...placedErrors(check.errors, entry.id), ...draft.problems]),
    [check.errors, entry.id, draft.problems],
  );
  const [title, setTitle] = useState<string>();
  const current = groups.find((group) => group.title === title) ?? groups[0];
  useLeaveGuard(draft.changes.length > 0 || draft.problems.size > 0, t('The changed configuration is not saved. Leave anyway?'));

  const groupOf = (id: string) => groups.find(({ settings }) => settings.some((one) => isWithin(id, one.id)));
  const changed = new Set(draft.changes.map(({ path }) => groups.find(({ settings }) => settings.some((one) => one.path[2] === path[2]))?.title));
  const wrong = new Set([...errors.keys()].map((id) => groupOf(id)?.title));
  return (
    <SettingFormContext value={draft.form}>
      {draft.meanwhile.length > 0 && (
        <div className="notice warn" role="alert">
          <div className="meanwhile">
            <p>{tx('{name} Your changes are kept.', { name: <strong>{t('The agent has changed meanwhile.')}</strong> })}</p>
            <ChangeList changes={draft.meanwhile} />
          </div>
          <Button small onClick={draft.dismissMeanwhile}>
            {t('Dismiss')}
          </Button>
        </div>
      )}
      <div className="settings">
        <div className="settings-side">
          <nav className="settings-nav" aria-label={t('Parts of the configuration')}>
            <div>
              {groups.map((group) => (
                <button
                  key={group.title}
                  type="button"
                  className="settings-nav-item"
                  aria-current={group === current ? 'true' : undefined}
                  onClick={() => setTitle(group.title)}
                >
                  {group.title}
                  {changed.has(group.title) && <span className="dot accent" role="img" aria-label={t('changed')} />}
                  {wrong.has(group.title) && <span className="dot bad" role="img" aria-label={t('has errors')} />}
                </button>
              ))}
            </div>
          </nav>
          <select
            className="settings-select"
            aria-label={t('Part of the configuration')}
            value={current?.title ?? ''}
            onChange={({ target }) => setTitle(target.value)}
          >
            {groups.map((group) => (
              <option key={group.title}>{group.title}</option>
            ))}
          </select>
        </div>
        <div className="settings-main">
          {current !== undefined && (
            <section key={current.title} className="settings-section" aria-labelledby="part-title">
              <header>
                <div>
                  <h2 id="part-title">{current.title}</h2>
                  <p className="lead">{current.about}</p>
                  {current.link !== undefined && (
                    <p className="hint">
                      <PageLink to={`/agents/${encodeURIComponent(agentId)}/${current.link.tab}`}>{current.link.text}</PageLink>.
                    </p>
                  )}
                </div>
                {toggle}
              </header>
              {current.settings.map((setting) => (
                <SettingView
                  key={setting.id}
                  setting={setting}
                  value={valueAt(draft.document, setting.path)}
                  stored={valueAt(draft.stored, setting.path)}
                  inForce={valueAt(agent.config, setting.path.slice(2))}
                  errors={errors}
                />
              ))}
            </section>
          )}
          <SaveBar
            draft={draft}
            check={check}
            errors={errors}
            outlook={check.preview === undefined ? undefined : t('In force from the next turn')}
            review={(onClose, onDone) => (
              <AgentReview
                agentId={agentId}
                draft={draft}
                check={check}
                onClose={onClose}
                onSaved={(saved) => {
                  onDone(saved);
                  onSaved();
                }}
              />
            )}
            onShow={(id) => {
              const group = groupOf(id);
              return group === undefined ? undefined : () => setTitle(group.title);
            }}
          />
        </div>
      </div>
    </SettingFormContext>
  );
}

function isWithin(id: string, other: string): boolean {
  return id === other || (id.startsWith(other) && /^[.[]/.test(id.slice(other.length)));
}
