import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Badge, Button, Failure, Field, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import type { Agent } from './agent-page.tsx';
import { ChangeList } from '../../ui/change-list.tsx';
import { type ConfigChange, configChanges } from '../../data/config-changes.ts';

type Policy = Agent['config']['tools'];

const profiles: readonly Policy['profile'][] = ['none', 'minimal', 'coding', 'messaging', 'supervisor', 'full'];
/** Origins worth comparing; each other origin has the tools of one of these. */
const origins = ['rpc', 'api', 'v1', 'webhook', 'cron', 'heartbeat', 'mcp'] as const;
const refusals: Readonly<Record<NonNullable<Result<'tools.list'>['tools'][number]['refusal']>, string>> = {
  explicit_deny: t('denied by name'),
  not_in_profile: t('not in the profile or the allow list'),
  origin: t('not for turns of this origin'),
};
const riskTones: Readonly<Record<string, Tone>> = { read: 'neutral', write: 'warn', outward: 'accent' };

/** Shows which tools turns of an origin may use and why others are denied, with the policy that decides it. */
export function ToolsTab({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const { client } = useSession();
  const { agentId } = agent;
  const [origin, setOrigin] = useState<(typeof origins)[number]>('rpc');
  const [query, setQuery] = useState('');
  const listed = useLoad(['tools.list', agentId, origin], (signal) => client.call('tools.list', { agentId, origin }, { signal }));
  const wanted = query.trim().toLocaleLowerCase();
  const shown = (listed.data?.tools ?? []).filter(({ name, description }) => `${name} ${description}`.toLocaleLowerCase().includes(wanted));
  const allowed = shown.filter((tool) => tool.allowed).length;
  return (
    <>
      <PolicyForm
        key={JSON.stringify(agent.config.tools)}
        agent={agent}
        onChanged={() => {
          onChanged();
          listed.reload();
        }}
      />
      <div className="toolbar">
        <SearchField label={t('Search tools')} value={query} onChange={setQuery} />
        <select
          aria-label={t('Origin of the turn')}
          value={origin}
          onChange={({ target: { value } }) => setOrigin(origins.find((one) => one === value) ?? 'rpc')}
        >
          {origins.map((one) => (
            <option key={one} value={one}>
              {t('Turns from {one}', { one })}
            </option>
          ))}
        </select>
        {listed.data !== undefined && (
          <span className="hint" role="status">
            {t('{allowed} of {tools} allowed', { allowed, tools: plural(shown.length, 'tool') })}
          </span>
        )}
      </div>
      {listed.error !== undefined && <Failure error={listed.error} onRetry={listed.reload} />}
      {listed.data === undefined && listed.loading && <Skeleton lines={6} />}
      <ul className="rows">
        {shown.map((tool) => (
          <li key={tool.name} className="row">
            <div className="row-main">
              <span className="row-title mono">{tool.name}</span>
              <p className="snippet" dir="auto">
                {tool.description}
              </p>
            </div>
            <div className="row-facts">
              {tool.source !== 'builtin' && <Badge>{tool.source}</Badge>}
              <Badge tone={riskTones[tool.risk] ?? 'neutral'}>{tool.risk}</Badge>
              {tool.deferred && <Badge>{t('loaded on demand')}</Badge>}
              <Badge tone={tool.allowed ? 'good' : 'bad'}>{tool.allowed ? t('Allowed') : t('Denied')}</Badge>
              {tool.refusal !== undefined && <span>{refusals[tool.refusal]}</span>}
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Edits profile, allow list and deny list; the server reports the changes before they are applied. */
function PolicyForm({ agent: { agentId, config }, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const { client } = useSession();
  const [profile, setProfile] = useState(config.tools.profile);
  const [allow, setAllow] = useState(config.tools.allow.join(', '));
  const [deny, setDeny] = useState(config.tools.deny.join(', '));
  const [plan, setPlan] = useState<readonly ConfigChange[]>();
  const { busy, error, run } = useAction();
  const tools = { profile, allow: patterns(allow), deny: patterns(deny) };
  const update = async (dryRun: boolean): Promise<void> => {
    const { config: merged } = await client.call('agents.update', { agentId, config: { tools }, dryRun });
    if (dryRun) setPlan(configChanges(config, merged));
    else onChanged();
  };
  const changed = (): void => setPlan(undefined);
  return (
    <form
      className="panel"
      aria-label={t('Policy')}
      onSubmit={(event) => {
        event.preventDefault();
        run(() => update(true));
      }}
    >
      <Field label={t('Profile')} hint={t('The base set.')}>
        {(id, hint) => (
          <select
            id={id}
            aria-describedby={hint}
            value={profile}
            onChange={({ target: { value } }) => {
              setProfile(profiles.find((one) => one === value) ?? 'minimal');
              changed();
            }}
          >
            {profiles.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </Field>
      <div className="field-pair">
        <Field label={t('Also allow')} hint={t('Names, group:<name> or mcp__<server>--*, separated by commas.')}>
          {(id, hint) => (
            <input
              id={id}
              aria-describedby={hint}
              value={allow}
              onChange={(event) => {
                setAllow(event.target.value);
                changed();
              }}
            />
          )}
        </Field>
        <Field label={t('Deny')} hint={t('Overrides everything else.')}>
          {(id, hint) => (
            <input
              id={id}
              aria-describedby={hint}
              value={deny}
              onChange={(event) => {
                setDeny(event.target.value);
                changed();
              }}
            />
          )}
        </Field>
      </div>
      {error !== undefined && <Failure error={error} title={t('Invalid policy.')} />}
      {plan !== undefined && <ChangeList changes={plan} />}
      {plan?.some(({ path, after }) => path === 'tools.profile' && after === 'full') === true && (
        <Notice tone="warn">{t('The profile full grants the agent every tool.')}</Notice>
      )}
      <div className="actions">
        <Button submit disabled={busy}>
          {t('Check')}
        </Button>
        <Button look="primary" disabled={busy || plan === undefined || plan.length === 0} onClick={() => run(() => update(false))}>
          {t('Apply')}
        </Button>
      </div>
    </form>
  );
}

function patterns(text: string): string[] {
  return text
    .split(/[\s,]+/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}
