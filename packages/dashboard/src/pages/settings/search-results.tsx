import { t, tx } from '../../language.ts';
import { useMemo, useState } from 'react';
import type { FieldErrors } from '../../data/field-errors.ts';
import { plural } from '../../data/format.ts';
import { Button, Empty } from '../../ui/parts.tsx';
import { useSettingForm } from '../../ui/schema/form.ts';
import { isRecord, valueAt } from '../../ui/schema/paths.ts';
import { entrySetting, type Setting } from '../../ui/schema/setting.ts';
import { SettingView } from '../../ui/schema/setting-view.tsx';
import { type Findable, searchSettings, shownId, shownSetting } from './search-settings.ts';
import type { Config } from '../../data/use-config.ts';
import type { Draft } from '../../ui/schema/use-draft.ts';

/** Results rendered at once. */
const pageSize = 40;
const shownEntries = 8;

/** The keys that a search finds, to be changed in place. */
export function SearchResults({
  query,
  findable,
  config,
  draft,
  errors,
  onShow,
}: {
  readonly query: string;
  readonly findable: readonly Findable[];
  readonly config: Config;
  readonly draft: Draft;
  readonly errors: FieldErrors;
  readonly onShow: (setting: Setting) => void;
}) {
  const { lookup, opened } = useSettingForm();
  const [limit, setLimit] = useState({ query, count: pageSize });
  const count = limit.query === query ? limit.count : pageSize;
  const { settings, entries } = useMemo(() => searchSettings(findable, draft.document, query), [findable, draft.document, query]);
  const open = (record: Setting, key: string): void => {
    const entry = entrySetting(record, key, lookup);
    opened.set(new Set([...opened.get(), entry.id]));
    onShow(entry);
  };
  return (
    <section className="settings-section" aria-label={t('Search results')}>
      <header>
        <p className="hint" role="status">
          {tx('{settings} found', { settings: plural(settings.length + entries.length, 'setting') })}
        </p>
      </header>
      {settings.length + entries.length === 0 && <Empty title={t('Nothing found')}>{t('Names, paths and descriptions are searched.')}</Empty>}
      {entries.slice(0, shownEntries).map(({ record, key }) => (
        <div key={`${record.id} ${key}`} className="found">
          <button type="button" className="link-like" onClick={() => open(record, key)}>
            {key}
          </button>
          <span className="hint">{record.id}</span>
        </div>
      ))}
      {settings
        .slice(0, count)
        .map((one) =>
          one.template || one.setting.shape.kind === 'record' || one.setting.shape.kind === 'items' ? (
            <FoundPart key={one.setting.id} findable={one} document={draft.document} sections={findable} onOpen={open} onShow={onShow} />
          ) : (
            <SettingView
              key={one.setting.id}
              setting={one.setting}
              value={valueAt(draft.document, one.setting.path)}
              stored={valueAt(draft.stored, one.setting.path)}
              inForce={valueAt(config.inForce, one.setting.path)}
              errors={errors}
            />
          ),
        )}
      {settings.length > count && (
        <Button onClick={() => setLimit({ query, count: count + pageSize })}>
          {t('Show more ({settings})', { settings: settings.length - count })}
        </Button>
      )}
    </section>
  );
}

/** A key that each entry of a record has, or a whole list: leads to where it is edited. */
function FoundPart({
  findable,
  document,
  sections,
  onOpen,
  onShow,
}: {
  readonly findable: Findable;
  readonly document: unknown;
  readonly sections: readonly Findable[];
  readonly onOpen: (record: Setting, key: string) => void;
  readonly onShow: (setting: Setting) => void;
}) {
  const { setting } = findable;
  const record = shownSetting(findable, sections);
  const value = record === undefined ? undefined : valueAt(document, record.path);
  const keys = isRecord(value) ? Object.keys(value) : [];
  return (
    <div className="setting found-part">
      <div className="setting-text">
        <span className="setting-title">{setting.title}</span>
        {setting.description !== undefined && <p className="hint">{setting.description.replaceAll('`', '')}</p>}
        <p className="setting-facts">
          <code>{shownId(setting)}</code>
          <span className={`setting-apply ${setting.apply}`}>{setting.apply}</span>
        </p>
      </div>
      <div className="setting-value">
        {record !== undefined && (
          <div className="chips">
            {keys.slice(0, shownEntries).map((key) => (
              <button key={key} type="button" className="chip" onClick={() => onOpen(record, key)}>
                {key}
              </button>
            ))}
            <Button small look="quiet" onClick={() => onShow(record)} label={t('Show {title}', { title: record.title })}>
              {keys.length > shownEntries ? t('Show all {keys}', { keys: keys.length }) : t('Show')}
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}
