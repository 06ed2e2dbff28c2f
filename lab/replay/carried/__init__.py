"""What a policy costs that has to carry everything, by rules of their own for values and pages.

    python -m lab.replay.carried PATH… --policy default --window 64000

A second yardstick beside `lab.replay`: of each run only views are asked, so it is quick enough to
try a policy on, and its rules are those by which others measured ullage from outside.

wants      which values and old texts of edits each reply needs
sight      what of them a view shows
passages   what replies repeat from far back, eight words in a row
recalling  how a reader brings back what a view does not show, and the pages that takes
sums       what the views cost, with a page paid for whatever they do not show
policies   what can be tried: presets, our stages with other settings, and games that must lose
"""
