/**
 * The grammar of weakform's language for tree-sitter. It follows fem-dsl/grammar/src/grammar.pest; the words that begin
 * items are words in their place only. `.ci/editors` parses all examples and forms of the tests with it.
 */

const PREC = { or: 1, and: 2, not: 3, compare: 4, sum: 5, product: 6, sign: 7, power: 8, index: 9 };

/** One or more, separated by commas; with `end` one more comma at the end. */
const list = (rule, end) => seq(rule, repeat(seq(',', rule)), ...(end ? [optional(',')] : []));

module.exports = grammar({
  name: 'wf',

  word: $ => $.identifier,

  extras: $ => [/[ \t\r\n]/, $.documentation, $.line_comment, $.block_comment],

  supertypes: $ => [$._expression],

  rules: {
    source_file: $ => repeat(choice($.form, $.problem)),

    // Comments. Blocks nest.
    documentation: _ => token(prec(1, /\/\/\/[^\n]*/)),
    line_comment: _ => token(/\/\/[^\n]*/),
    block_comment: $ => seq(
      '/*',
      repeat(choice($.block_comment, $._comment_text)),
      '*/',
    ),
    _comment_text: _ => token(prec(-1, /[^*\/]+|\*|\//)),

    // Tokens.
    identifier: _ => /[A-Za-z][A-Za-z0-9_]*/,
    number: _ => /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/,
    integer: _ => /[0-9]+/,
    string: _ => /"[^"\n]*"/,
    boolean: _ => choice('true', 'false'),

    // Forms.
    form: $ => seq('form', field('name', $.identifier), '{', repeat($._form_item), '}'),
    _form_item: $ => choice($._plain_item, $.state, $.update, $.region),
    _plain_item: $ => choice(
      $.field, $.aux, $.param, $.let, $.function, $.row, $.test, $.residual, $.energy,
    ),
    field: $ => seq(
      'field', field('name', $.identifier), ':', field('shape', $.shape),
      optional(seq('in', field('space', $.space))), optional(seq('on', $.tags)), ';',
    ),
    aux: $ => seq(
      'aux', field('name', $.identifier), ':', field('shape', $.shape),
      optional(seq('on', field('place', $.place))), ';',
    ),
    state: $ => seq(
      'state', field('name', $.identifier), ':', field('shape', $.shape),
      optional(seq('on', 'points')), '=', field('value', $._expression), ';',
    ),
    update: $ => seq('update', field('name', $.identifier), '=', field('value', $._expression), ';'),
    param: $ => seq(
      'param', field('name', $.identifier), optional(seq(':', field('shape', $.shape))),
      '=', field('value', $._expression), ';',
    ),
    let: $ => seq('let', field('name', $.identifier), '=', field('value', $._expression), ';'),
    function: $ => seq(
      'fn', field('name', $.identifier), field('parameters', $.parameters),
      '=', field('body', $._expression), ';',
    ),
    parameters: $ => seq('(', optional(list($.identifier, true)), ')'),
    row: $ => seq(
      field('kind', choice('f0', 'f1')), '[', field('field', choice($.traced, $.identifier)), ']',
      '=', field('value', $._expression), ';',
    ),
    traced: $ => seq(
      field('side', choice('inside', 'outside', 'jump', 'avg')), '(', $.identifier, ')',
    ),
    test: $ => seq('test', field('name', $.identifier), 'for', field('field', $.identifier), ';'),
    residual: $ => seq('residual', '=', field('value', $._expression), ';'),
    energy: $ => seq('energy', '=', field('value', $._expression), ';'),
    region: $ => seq(
      'on',
      choice(
        seq(choice('boundary', 'cells'), $.tags),
        seq('interior', optional(choice($.tags, $.ordered))),
      ),
      '{', repeat($._plain_item), '}',
    ),
    ordered: $ => seq('from', $.string, 'to', $.string),
    tags: $ => list($.string),
    shape: $ => seq(
      optional('complex'),
      choice('scalar', 'tensor', seq('vector', optional(seq('(', $.integer, ')')))),
    ),
    space: $ => seq($.family, optional(seq('(', $.degree, ')'))),
    family: _ => choice('H1', 'L2', 'Hcurl', 'Hdiv', 'R'),
    degree: $ => choice(seq('k', optional(seq(choice('+', '-'), $.integer))), $.integer),
    place: $ => choice(seq('nodes', optional(seq('in', $.space))), 'cells', 'points'),

    // Problems.
    problem: $ => seq(
      'problem', field('name', $.identifier), 'solves', field('form', $.identifier),
      '{', repeat($._problem_item), '}',
    ),
    _problem_item: $ => choice(
      $.mesh, $.setting, $.value, $.dirichlet, $.bound, $.source, $.periodic, $.solution,
      $.adapt, $.solver, $.report, $.output,
    ),
    mesh: $ => seq('mesh', '=', choice($.string, $.keyword_call), ';'),
    setting: $ => seq(
      field('name', choice(
        'degree', 'quadrature', 'refine', 'eigen', 'mass', 'stages', 'time', 't',
      )),
      '=', field('value', $._expression), ';',
    ),
    value: $ => choice(
      seq('param', field('name', $.identifier), '=', field('value', $._expression), ';'),
      seq('aux', field('name', $.identifier), '=', field('value', $._expression), optional($._on), ';'),
    ),
    dirichlet: $ => seq(
      'dirichlet', $._subject, optional(seq('=', field('value', $._expression))),
      optional(choice($._on, $._at)), ';',
    ),
    bound: $ => seq(
      'bound', $._subject, choice('>=', '<='), field('value', $._expression), optional($._on), ';',
    ),
    source: $ => seq(
      'source', field('field', $.identifier), optional($.component),
      '=', field('value', $._expression), $._at, ';',
    ),
    _subject: $ => choice($.normal, seq(field('field', $.identifier), optional($.component))),
    normal: $ => seq(choice('dot', 'cross'), '(', $.identifier, ',', $.identifier, ')'),
    component: $ => seq('[', $._expression, ']'),
    _on: $ => seq('on', choice('all', $.tags)),
    _at: $ => seq('at', field('place', $._expression)),
    periodic: $ => seq(
      'periodic', $.string, '=', $.string, optional(seq('by', $.keyword_call)), ';',
    ),
    solution: $ => choice(
      seq('initial', $.rate, '=', field('value', $._expression), ';'),
      seq(
        choice('exact', 'manufactured', 'mean', 'initial'), field('field', $.identifier),
        '=', field('value', $._expression), ';',
      ),
    ),
    rate: $ => seq('dt', '(', $.identifier, ')'),
    adapt: $ => seq('adapt', $.settings, ';'),
    solver: $ => seq('solver', '=', $.keyword_call, ';'),
    report: $ => seq('report', field('name', $.identifier), '=', field('value', $._expression), ';'),
    output: $ => seq(
      'output', field('name', $.identifier), optional(seq('=', field('value', $._expression))),
      optional(choice('discontinuous', seq('on', 'cells'))), ';',
    ),
    keyword_call: $ => seq(field('word', $.identifier), optional($.settings)),
    settings: $ => seq('(', optional(list($.named_argument, true)), ')'),
    named_argument: $ => seq(field('name', alias($.identifier, $.label)), ':', field('value', $._argument)),

    // Expressions.
    _expression: $ => choice(
      $.number, $.boolean, $.identifier, $.call, $.index, $.array, $.parenthesized, $.if,
      $.unary, $.binary,
    ),
    parenthesized: $ => seq('(', $._expression, ')'),
    array: $ => seq('[', list($._expression, true), ']'),
    call: $ => prec(PREC.index, seq(field('function', $.identifier), $.arguments)),
    arguments: $ => seq('(', optional(list(choice($.named_argument, $._argument), true)), ')'),
    _argument: $ => choice($.string, $.facets, $._expression),
    facets: $ => prec.right(seq(
      'interior', optional(choice($.string, $.ordered)),
    )),
    index: $ => prec(PREC.index, seq(
      field('base', $._expression), '[', list($._expression, false), ']',
    )),
    if: $ => seq(
      'if', field('condition', $._expression), $._branch,
      repeat(seq('else', 'if', field('condition', $._expression), $._branch)),
      'else', $._branch,
    ),
    _branch: $ => seq('{', $._expression, '}'),
    unary: $ => choice(
      prec(PREC.sign, seq('-', $._expression)),
      prec(PREC.not, seq('!', $._expression)),
    ),
    binary: $ => choice(
      ...[['||', PREC.or], ['&&', PREC.and], ['+', PREC.sum], ['-', PREC.sum],
        ['*', PREC.product], ['/', PREC.product]].map(([sign, own]) =>
        prec.left(own, seq(field('left', $._expression), field('operator', sign), field('right', $._expression)))),
      ...['<', '<=', '>', '>=', '==', '!='].map(sign =>
        prec.left(PREC.compare, seq(field('left', $._expression), field('operator', sign), field('right', $._expression)))),
      prec.right(PREC.power, seq(field('left', $._expression), field('operator', '^'), field('right', $._expression))),
    ),
  },
});
