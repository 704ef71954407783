import { t } from '../../language.ts';
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { FieldErrors } from '../../data/field-errors.ts';
import { navigate } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { Empty } from '../../ui/parts.tsx';
import type { Change } from '../../ui/schema/changes.ts';
import { SettingFormContext } from '../../ui/schema/form.ts';
import type { Setting } from '../../ui/schema/setting.ts';
import { elementId, partOf } from '../../ui/schema/setting-props.tsx';
import { SettingView } from '../../ui/schema/setting-view.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { SaveBar } from '../../ui/schema/save-bar.tsx';
import { useCheck } from '../../ui/schema/use-check.ts';
import type { Draft } from '../../ui/schema/use-draft.ts';
import { useSession } from '../../data/context.ts';
import { outlookOf, previewChanges } from './preview.ts';
import { ReviewDialog } from './review-dialog.tsx';
import { SearchResults } from './search-results.tsx';
import { findableSettings, sectionPath } from './search-settings.ts';
import { groupSections } from './section-groups.ts';
import { SectionView } from './section-view.tsx';
import type { Config, ConfigSchema } from '../../data/use-config.ts';

/** All settings, a section at a time, or those that a search finds. */
export function ConfigTab({
  config,
  draft,
  schema: { lookup, sections },
  section: wanted,
  named,
  reload,
}: {
  readonly config: Config;
  readonly draft: Draft;
  readonly schema: ConfigSchema;
  readonly section: string | undefined;
  /** Id of the key that the address names, which is scrolled to. */
  readonly named: string | undefined;
  readonly reload: () => void;
}) {
  const [query, setQuery] = useState('');
  const deferred = useDeferredValue(query);
  const [target, setTarget] = useState<{ readonly id: string }>();
  const reached = useRef<object>(undefined);
  const [lastNamed, setLastNamed] = useState<string>();
  if (named !== lastNamed) {
    setLastNamed(named);
    if (named !== undefined) {
      setQuery('');
      setTarget({ id: elementId({ id: named }) });
    }
  }
  const findable = useMemo(() => findableSettings(sections, lookup), [sections, lookup]);
  const groups = useMemo(() => groupSections(sections), [sections]);
  const { client } = useSession();
  const ask = useCallback((changes: readonly Change[], signal: AbortSignal) => previewChanges(client, changes, signal), [client]);
  const check = useCheck(draft.changes, draft.digest, ask);
  const errors = useMemo(
    (): FieldErrors => (draft.problems.size === 0 ? check.errors : new Map([...check.errors, ...draft.problems])),
    [check, draft.problems],
  );
  const current = sections.find(({ id }) => id === wanted) ?? groups[0]?.sections[0];
  const changed = useMemo(() => new Set(draft.changes.map(({ path }) => path[0])), [draft.changes]);

  // Another section, or the first results, begin at the top.
  const top = useRef<HTMLDivElement>(null);
  const shownPart = query === '' ? current?.id : '';
  useEffect(() => {
    const element = top.current;
    if (element !== null && element.getBoundingClientRect().top < 0) element.scrollIntoView();
  }, [shownPart]);

  // Shows the key that a search result or a message leads to, once its section is drawn.
  useEffect(() => {
    const element = target === undefined || target === reached.current || query !== '' ? null : document.getElementById(target.id);
    if (element === null) return;
    reached.current = target;
    element.scrollIntoView({ block: 'center' });
    element.querySelector<HTMLElement>('input, select, textarea, button')?.focus({ preventScroll: true });
  }, [target, query, current]);

  const show = (setting: Setting): void => {
    setQuery('');
    setTarget({ id: elementId(setting) });
    navigate(sectionPath(String(setting.path[0])));
  };

  return (
    <SettingFormContext value={draft.form}>
      <div className="settings" ref={top}>
        <div className="settings-side">
          <SearchField
            label={t('Search settings')}
            hint={t('Search settings')}
            value={query}
            onChange={setQuery}
            onEnter={() => top.current?.querySelector<HTMLElement>('.settings-section :is(button, input, select, textarea)')?.focus()}
          />
          <nav className="settings-nav" aria-label={t('Sections')}>
            {groups.map((group) => (
              <div key={group.title}>
                <p className="settings-nav-title">{group.title}</p>
                {group.sections.map(({ id, title }) => (
                  <PageLink
                    key={id}
                    to={sectionPath(id)}
                    className="settings-nav-item"
                    current={query === '' && id === current?.id}
                    onFollow={() => setQuery('')}
                  >
                    {title}
                    {changed.has(id) && <span className="dot accent" role="img" aria-label={t('changed')} />}
                    {[...errors.keys()].some((one) => one === id || one.startsWith(`${id}.`)) && (
                      <span className="dot bad" role="img" aria-label={t('has errors')} />
                    )}
                  </PageLink>
                ))}
              </div>
            ))}
          </nav>
          <select
            className="settings-select"
            aria-label={t('Section')}
            value={current?.id ?? ''}
            onChange={({ target: { value } }) => {
              setQuery('');
              navigate(sectionPath(value));
            }}
          >
            {groups.map((group) => (
              <optgroup key={group.title} label={group.title}>
                {group.sections.map(({ id, title }) => (
                  <option key={id} value={id}>
                    {title}
                    {changed.has(id) ? ` ${t('(changed)')}` : ''}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        </div>
        <div className="settings-main">
          {query !== '' ? (
            <SearchResults query={deferred} findable={findable} config={config} draft={draft} errors={errors} onShow={show} />
          ) : current === undefined ? (
            <Empty title={t('No settings')} />
          ) : current.shape.kind === 'object' || current.shape.kind === 'record' ? (
            <SectionView
              key={current.id}
              setting={current}
              value={partOf(draft.document, current.id)}
              stored={partOf(draft.stored, current.id)}
              inForce={partOf(config.inForce, current.id)}
              errors={errors}
            />
          ) : (
            <SettingView
              key={current.id}
              setting={current}
              value={partOf(draft.document, current.id)}
              stored={partOf(draft.stored, current.id)}
              inForce={partOf(config.inForce, current.id)}
              errors={errors}
            />
          )}
          <SaveBar
            draft={draft}
            check={check}
            errors={errors}
            outlook={check.preview === undefined ? undefined : outlookOf(check.preview)}
            review={(onClose, onSaved) => <ReviewDialog draft={draft} check={check} reload={reload} onClose={onClose} onSaved={onSaved} />}
            onShow={(id) => {
              const found = findable.find(({ setting }) => setting.id === id)?.setting;
              return found === undefined ? undefined : () => show(found);
            }}
          />
        </div>
      </div>
    </SettingFormContext>
  );
}
