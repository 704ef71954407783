import { t, tx } from '../../language.ts';
import { useCallback, useMemo } from 'react';
import { useSession } from '../../data/context.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { type Config, type ConfigSchema, useConfig, useConfigSchema } from '../../data/use-config.ts';
import { mayLeave, useLeaveGuard } from '../../router.ts';
import { ChangeList } from '../../ui/change-list.tsx';
import { Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import type { Change } from '../../ui/schema/changes.ts';
import { SettingFormContext } from '../../ui/schema/form.ts';
import { valueAt } from '../../ui/schema/paths.ts';
import { SaveBar } from '../../ui/schema/save-bar.tsx';
import { isSchema, type Lookup } from '../../ui/schema/schema.ts';
import { childSettings, type Setting, settingOf } from '../../ui/schema/setting.ts';
import { SettingView } from '../../ui/schema/setting-view.tsx';
import { useCheck } from '../../ui/schema/use-check.ts';
import { useDraft } from '../../ui/schema/use-draft.ts';
import { outlookOf, previewChanges } from '../settings/preview.ts';
import { ReviewDialog } from '../settings/review-dialog.tsx';
import { groupChannelKeys } from './channel-groups.ts';

interface Named {
  readonly name: string;
  readonly type: string;
}

/** Edits the settings of one channel: who is answered, when, and how. */
export function ChannelSettings({ channel, onClose }: { readonly channel: Named; readonly onClose: () => void }) {
  const config = useConfig();
  const schema = useConfigSchema();
  const channels = schema.data?.sections.find(({ id }) => id === 'channels');
  const entry = schema.data === undefined || channels === undefined ? undefined : settingOfChannel(channels, channel, schema.data.lookup);
  const back = (
    <Button onClick={() => mayLeave() && onClose()} label={t('Back to channels')}>
      {t('Back')}
    </Button>
  );
  return (
    <Page title={t('Channel {name}', { name: channel.name })} lead={t('People, groups, quiet hours, answers and connection.')} actions={back}>
      {config.error !== undefined && <Failure error={config.error} onRetry={config.reload} />}
      {schema.error !== undefined && <Failure error={schema.error} onRetry={schema.reload} />}
      {config.data === undefined || schema.data === undefined ? (
        <Skeleton lines={8} />
      ) : entry === undefined ? (
        <Empty title={t('No settings')} />
      ) : (
        <Editor entry={entry} config={config.data} schema={schema.data} reload={config.reload} />
      )}
    </Page>
  );
}

interface EditorProps {
  readonly entry: Setting;
  readonly config: Config;
  readonly schema: ConfigSchema;
  readonly reload: () => void;
}

function Editor({ entry, config, schema: { lookup }, reload }: EditorProps) {
  const { client } = useSession();
  const groups = useMemo(() => groupChannelKeys(childSettings(entry, lookup)), [entry, lookup]);
  const draft = useDraft(config, lookup, noModels);
  const ask = useCallback((changes: readonly Change[], signal: AbortSignal) => previewChanges(client, changes, signal), [client]);
  const check = useCheck(draft.changes, draft.digest, ask);
  const errors = useMemo((): FieldErrors => new Map([...check.errors, ...draft.problems]), [check.errors, draft.problems]);
  useLeaveGuard(draft.changes.length > 0 || draft.problems.size > 0, t('The changed settings are not saved. Leave anyway?'));
  return (
    <SettingFormContext value={draft.form}>
      {draft.meanwhile.length > 0 && (
        <div className="notice warn" role="alert">
          <div className="meanwhile">
            <p>{tx('{name} Your changes are kept.', { name: <strong>{t('config.yaml has changed meanwhile.')}</strong> })}</p>
            <ChangeList changes={draft.meanwhile} />
          </div>
          <Button small onClick={draft.dismissMeanwhile}>
            {t('Dismiss')}
          </Button>
        </div>
      )}
      {groups.map(({ title, about, settings }) => (
        <section key={title} className="settings-section" aria-label={title}>
          <header>
            <div>
              <h2>{title}</h2>
              <p className="lead">{about}</p>
            </div>
          </header>
          {settings.map((setting) => (
            <SettingView
              key={setting.id}
              setting={setting}
              value={valueAt(draft.document, setting.path)}
              stored={valueAt(draft.stored, setting.path)}
              inForce={valueAt(config.inForce, setting.path)}
              errors={errors}
            />
          ))}
        </section>
      ))}
      <SaveBar
        draft={draft}
        check={check}
        errors={errors}
        outlook={check.preview === undefined ? undefined : outlookOf(check.preview)}
        review={(onClose, onSaved) => <ReviewDialog draft={draft} check={check} reload={reload} onClose={onClose} onSaved={onSaved} />}
        onShow={() => undefined}
      />
    </SettingFormContext>
  );
}

const noModels: readonly string[] = [];

/** Returns the setting of a channel with the keys of its platform; undefined for a platform that the schema does not have. */
function settingOfChannel(channels: Setting, { name, type }: Named, lookup: Lookup): Setting | undefined {
  if (channels.shape.kind !== 'record') return undefined;
  const entry = lookup(channels.shape.entry);
  const kinds = entry['oneOf'] ?? entry['anyOf'];
  const found: unknown = Array.isArray(kinds) ? kinds.find((kind) => typeOf(lookup(kind), lookup) === type) : undefined;
  return found === undefined ? undefined : settingOf([...channels.path, name], found, lookup, channels, { isEntry: true });
}

function typeOf({ properties }: ReturnType<Lookup>, lookup: Lookup): unknown {
  return isSchema(properties) ? lookup(properties['type'])['const'] : undefined;
}
