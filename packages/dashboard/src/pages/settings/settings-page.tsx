import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import type { Loaded } from '../../data/use-load.ts';
import { useLeaveGuard } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { ConfigTab } from './config-tab.tsx';
import { HistoryTab } from './history-tab.tsx';
import { SettingsNotices } from './notices.tsx';
import { ProvidersTab } from './providers-tab.tsx';
import { SecretsTab } from './secrets-tab.tsx';
import { useModelNames } from '../../data/model-names.ts';
import { type Config, type ConfigSchema, useConfig, useConfigSchema } from '../../data/use-config.ts';
import { useDraft } from '../../ui/schema/use-draft.ts';

export const settingsPath = '/settings';

const tabs = [
  { path: '', name: t('Configuration') },
  { path: 'providers', name: t('Providers') },
  { path: 'secrets', name: t('Secrets') },
  { path: 'history', name: t('History') },
] as const;

/** The settings at `/settings`, with a section of the configuration at `/settings/config/<section>`, and a key at `/settings/config/<section>/<key>`. */
export function SettingsPage({ rest }: { readonly rest: string | undefined }) {
  const { admin } = useSession();
  return admin ? <Loading rest={rest ?? ''} /> : <AdminOnly title={t('Settings')} />;
}

function Loading({ rest }: { readonly rest: string }) {
  const config = useConfig();
  const schema = useConfigSchema();
  const [part = '', section, ...key] = rest.split('/');
  const tab = part === 'config' ? '' : part;
  return (
    <Page
      title={t('Settings')}
      lead={t('What the gateway is configured to do. Everything is kept in config.yaml; secrets have their own store.')}
      actions={
        <PageLink to="/start" className="button quiet">
          {t('Setup checklist')}
        </PageLink>
      }
    >
      {config.error !== undefined && <Failure error={config.error} onRetry={config.reload} />}
      {schema.error !== undefined && <Failure error={schema.error} onRetry={schema.reload} />}
      <Tabs
        label={t('Parts of the settings')}
        tabs={tabs.map(({ path, name }) => ({ to: path === '' ? settingsPath : `${settingsPath}/${path}`, name, current: path === tab }))}
      />
      {config.data === undefined || schema.data === undefined ? (
        (config.loading || schema.loading) && <Skeleton lines={8} />
      ) : (
        <Settings
          config={config.data}
          reload={config.reload}
          schema={schema.data}
          tab={tab}
          section={section}
          named={key.length === 0 ? undefined : key.join('/')}
        />
      )}
    </Page>
  );
}

function Settings({
  config,
  reload,
  schema,
  tab,
  section,
  named,
}: {
  readonly config: Config;
  readonly reload: Loaded<Config>['reload'];
  readonly schema: ConfigSchema;
  readonly tab: string;
  readonly section: string | undefined;
  readonly named: string | undefined;
}) {
  const draft = useDraft(config, schema.lookup, useModelNames());
  useLeaveGuard(draft.changes.length > 0 || draft.problems.size > 0, t('The changed settings are not saved. Leave anyway?'), settingsPath);
  return (
    <>
      <SettingsNotices config={config} draft={draft} />
      {tab === '' && <ConfigTab config={config} draft={draft} schema={schema} section={section} named={named} reload={reload} />}
      {tab === 'providers' && <ProvidersTab config={config} />}
      {tab === 'secrets' && <SecretsTab config={config} />}
      {tab === 'history' && <HistoryTab config={config} />}
      {!tabs.some(({ path }) => path === tab) && <Empty title={t('No such tab')} />}
    </>
  );
}
