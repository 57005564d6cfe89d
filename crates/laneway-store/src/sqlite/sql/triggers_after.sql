-- Which workflows come after which. Read when one is applied that does; there are few of them.
SELECT workflow, source FROM triggers WHERE source IS NOT NULL ORDER BY workflow, source;
