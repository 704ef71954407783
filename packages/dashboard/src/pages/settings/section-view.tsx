import { t } from '../../language.ts';
import { useState } from 'react';
import { PageLink } from '../../ui/link.tsx';
import { Button } from '../../ui/parts.tsx';
import { useSettingForm } from '../../ui/schema/form.ts';
import { JsonPart } from '../../ui/schema/json-part.tsx';
import type { SettingProps } from '../../ui/schema/setting-props.tsx';
import { EntryFields, SettingFields } from '../../ui/schema/setting-view.tsx';

/** Pages that edit a section with more help. */
const otherPages: Readonly<Record<string, { readonly to: string; readonly text: string }>> = {
  agents: { to: '/agents', text: t('Each agent has its own page') },
  mcp: { to: '/agents', text: t('The page of an agent tests and connects its servers') },
  webhooks: { to: '/webhooks', text: t('The page Webhooks tests a mapping') },
};

/** A section of the configuration, as fields or as JSON. */
export function SectionView(props: SettingProps) {
  const { setting, value, stored, errors } = props;
  const form = useSettingForm();
  const [isJson, setJson] = useState(false);
  const other = otherPages[setting.id];
  return (
    <section className="settings-section" aria-labelledby="section-title">
      <header>
        <div>
          <h2 id="section-title">{setting.title}</h2>
          {setting.description !== undefined && <p className="lead">{setting.description.replaceAll('`', '')}</p>}
          {other !== undefined && (
            <p className="hint">
              <PageLink to={other.to}>{other.text}</PageLink>.
            </p>
          )}
        </div>
        {value !== undefined && stored === undefined && (
          <Button small look="quiet" onClick={() => form.set(setting, undefined)}>
            {t('Undo')}
          </Button>
        )}
        <Button
          small
          look="quiet"
          label={isJson ? t('Form: {title}', { title: setting.title }) : t('JSON: {title}', { title: setting.title })}
          onClick={() => setJson(!isJson)}
        >
          {isJson ? t('Form') : t('JSON')}
        </Button>
      </header>
      {errors.get(setting.id) !== undefined && !isJson && <p className="field-error">{errors.get(setting.id)}</p>}
      {isJson ? (
        <JsonPart setting={setting} value={value} errors={errors} />
      ) : setting.shape.kind === 'object' ? (
        <SettingFields {...props} />
      ) : (
        <EntryFields {...props} />
      )}
    </section>
  );
}
