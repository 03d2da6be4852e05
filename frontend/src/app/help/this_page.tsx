/** Help about the page on screen: what it answers, and the definition of each of its numbers. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { shown } from '../../state/payload';
import { sentence, TILE_TERM } from '../../widgets/definition';
import { introductionOf } from '../../widgets/markdown';
import { RichText } from '../../widgets/rich_text';
import { definitionsOf, type Defined, type DefinedGroup } from './definitions';
import { readDocument } from './documents';

/** The `data-term` that the pointer or the focus is on. */
function useTerm(): string {
  const [term, setTerm] = useState('');
  useEffect(() => {
    const follow = ({ target }: Event): void => {
      const named = target instanceof Element ? target.closest('[data-term]') : null;
      if (named) setTerm(named.getAttribute('data-term') ?? '');
    };
    document.addEventListener('pointerover', follow);
    document.addEventListener('focusin', follow);
    return () => {
      document.removeEventListener('pointerover', follow);
      document.removeEventListener('focusin', follow);
    };
  }, []);
  return term;
}

function Definition({ number, isOn }: { number: Defined; isOn: boolean }): VNode {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isOn) box.current?.scrollIntoView({ block: 'nearest' });
  }, [isOn]);
  return (
    <div ref={box} class={isOn ? 'help-number on' : 'help-number'}>
      <dt>
        {number.title}
        {number.unit && <small>{number.unit}</small>}
      </dt>
      <dd>
        {sentence(number.description)}
        {number.formula && <code>{number.formula}</code>}
      </dd>
    </div>
  );
}

function Group({ group, term }: { group: DefinedGroup; term: string }): VNode {
  return (
    <section>
      <h3>{group.title ? `Table: ${group.title}` : 'Numbers on this page'}</h3>
      {group.title && group.description && <p>{sentence(group.description)}</p>}
      <dl>
        {group.numbers.map((number) => (
          <Definition
            key={number.title}
            number={number}
            isOn={(group.title ? '' : TILE_TERM) + number.title === term}
          />
        ))}
      </dl>
    </section>
  );
}

/** The introduction of a document; empty until it is read. */
function useIntroduction(path: string | undefined): string {
  const [read, setRead] = useState({ path: '', text: '' });
  useEffect(() => {
    if (!path) return;
    let isGone = false;
    readDocument(path).then(
      (markdown) => !isGone && setRead({ path, text: introductionOf(markdown) }),
      () => undefined, // the summary stays
    );
    return () => {
      isGone = true;
    };
  }, [path]);
  return read.path === path ? read.text : '';
}

export function ThisPage({ summary, path }: { summary: string; path: string | undefined }): VNode {
  const payload = shown.value?.payload;
  const groups = useMemo(() => (payload ? definitionsOf(payload) : []), [payload]);
  const introduction = useIntroduction(path);
  const term = useTerm();
  return (
    <>
      <section>
        <h3>What this page answers</h3>
        <p>
          <RichText text={introduction || sentence(summary)} />
        </p>
      </section>
      {groups.map((group, i) => (
        <Group key={i} group={group} term={term} />
      ))}
    </>
  );
}
