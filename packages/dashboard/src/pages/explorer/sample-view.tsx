import { t } from '../../language.ts';
import { useState } from 'react';
import { CopyButton } from '../../ui/copy-button.tsx';
import { type Language, languages, sampleOf, type SampleRequest } from './samples.ts';

/** A request as a program, in the language that was chosen last. */
export function SampleView({ request }: { readonly request: SampleRequest }) {
  const [language, setLanguage] = useState<Language>(lastLanguage);
  const text = sampleOf(language, request);

  function choose(next: Language): void {
    localStorage.setItem(storageKey, next);
    setLanguage(next);
  }

  return (
    <section className="sample" aria-label={t('As a program')}>
      <header>
        <div className="sample-languages" role="group" aria-label={t('Language')}>
          {languages.map((one) => (
            <button key={one} type="button" className="chip" aria-pressed={one === language} onClick={() => choose(one)}>
              {one}
            </button>
          ))}
        </div>
        <CopyButton text={text} label={t('Copy {language}', { language })} />
      </header>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </section>
  );
}

const storageKey = 'gatehouse.language';

function lastLanguage(): Language {
  const kept = localStorage.getItem(storageKey);
  return languages.find((one) => one === kept) ?? 'curl';
}
